//! Contexts.
#![expect(non_snake_case, reason = "the runtime's own names")]

use std::ffi::c_void;

use super::{give, not_null};
use crate::fault::{Outcome, fail, invalid};
use crate::registry::number;
use crate::stream::Context;
use crate::sys;
use crate::world::World;

pub(super) unsafe fn aclrtCreateContext(
    w: &mut World,
    context: *mut *mut c_void,
    device: i32,
) -> Outcome {
    not_null(context)?;
    let device = u32::try_from(device).ok().filter(|d| *d < w.options.devices);
    let Some(device) = device else {
        return fail(sys::ACL_ERROR_RT_INVALID_DEVICEID, "no such device");
    };
    let made = w.contexts.add(Context { device, shared: false, stopped: None });
    // Creating one makes it current, as documented.
    w.set_current(made);
    // SAFETY: the caller's contract.
    unsafe { give(context, made as *mut c_void) }
}

pub(super) unsafe fn aclrtDestroyContext(w: &mut World, context: *mut c_void) -> Outcome {
    let handle = number(context);
    if w.contexts.get(handle)?.shared {
        return invalid("a device's shared context is not destroyed but reset");
    }
    // Stricter: the real one leaves its streams dangling.
    if w.streams.iter().any(|(_, s)| s.context == handle) {
        return invalid("the context still has streams");
    }
    w.contexts.remove(handle).map(drop)
}

pub(super) unsafe fn aclrtSetCurrentContext(w: &mut World, context: *mut c_void) -> Outcome {
    w.contexts.get(number(context))?;
    w.set_current(number(context));
    Ok(())
}

pub(super) unsafe fn aclrtGetCurrentContext(w: &mut World, context: *mut *mut c_void) -> Outcome {
    not_null(context)?;
    let current = w.current()?;
    // SAFETY: the caller's contract.
    unsafe { give(context, current as *mut c_void) }
}
