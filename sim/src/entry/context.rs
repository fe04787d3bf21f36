//! The functions for contexts.
#![expect(non_snake_case, reason = "the runtime's own names")]

use super::argument::{Handle, Out};
use super::process::existing_device;
use crate::fault::{Outcome, invalid};
use crate::machine::Machine;
use crate::stream::Context;

pub(super) fn aclrtCreateContext(
    machine: &mut Machine,
    context: Out<Handle>,
    device: i32,
) -> Outcome {
    context.check()?;
    let device = existing_device(machine, device)?;
    let handle = machine.contexts.add(Context { device, shared: false });
    // A new context becomes current, as documented.
    machine.set_current(handle);
    context.handle(handle)
}

pub(super) fn aclrtDestroyContext(machine: &mut Machine, context: u64) -> Outcome {
    if machine.contexts.get(context)?.shared {
        return invalid("the shared context of a device cannot be destroyed; reset the device");
    }
    // This rule is stricter than the runtime, which leaves the streams dangling.
    if machine.streams.iter().any(|(_, s)| s.context == context) {
        return invalid("the context still has streams; destroy them first");
    }
    machine.contexts.remove(context).map(drop)
}

pub(super) fn aclrtSetCurrentContext(machine: &mut Machine, context: u64) -> Outcome {
    machine.contexts.get(context)?;
    machine.set_current(context);
    Ok(())
}

pub(super) fn aclrtGetCurrentContext(machine: &mut Machine, context: Out<Handle>) -> Outcome {
    context.check()?;
    let current = machine.current()?;
    context.handle(current)
}
