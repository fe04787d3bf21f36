//! The functions for contexts.
#![expect(non_snake_case, reason = "the runtime's own names")]

use std::ffi::c_void;

use super::{not_null, write_result};
use crate::fault::{Outcome, fail, invalid};
use crate::machine::Machine;
use crate::registry::handle_value;
use crate::stream::Context;
use crate::sys;

pub(super) unsafe fn aclrtCreateContext(
    machine: &mut Machine,
    context: *mut *mut c_void,
    device: i32,
) -> Outcome {
    not_null(context)?;
    let existing = u32::try_from(device).ok().filter(|d| *d < machine.options.devices);
    let Some(device) = existing else {
        return fail(sys::ACL_ERROR_RT_INVALID_DEVICEID, format!("device {device} does not exist"));
    };
    let handle = machine.contexts.add(Context { device, shared: false });
    // A new context becomes current, as documented.
    machine.set_current(handle);
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(context, handle as *mut c_void) }
}

pub(super) unsafe fn aclrtDestroyContext(machine: &mut Machine, context: *mut c_void) -> Outcome {
    let handle = handle_value(context);
    if machine.contexts.get(handle)?.shared {
        return invalid("the shared context of a device cannot be destroyed; reset the device");
    }
    // This rule is stricter than the runtime, which leaves the streams dangling.
    if machine.streams.iter().any(|(_, s)| s.context == handle) {
        return invalid("the context still has streams; destroy them first");
    }
    machine.contexts.remove(handle).map(drop)
}

pub(super) unsafe fn aclrtSetCurrentContext(
    machine: &mut Machine,
    context: *mut c_void,
) -> Outcome {
    machine.contexts.get(handle_value(context))?;
    machine.set_current(handle_value(context));
    Ok(())
}

pub(super) unsafe fn aclrtGetCurrentContext(
    machine: &mut Machine,
    context: *mut *mut c_void,
) -> Outcome {
    not_null(context)?;
    let current = machine.current()?;
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(context, current as *mut c_void) }
}
