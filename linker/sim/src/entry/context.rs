//! The functions for contexts.
#![expect(non_snake_case, reason = "the runtime's own names")]

use super::argument::{Handle, Out};
use crate::fault::Outcome;
use crate::machine::Runtime;

pub(super) fn aclrtSetCurrentContext(machine: &mut Runtime, context: u64) -> Outcome {
    machine.contexts.get(context)?;
    machine.set_current(context);
    Ok(())
}

pub(super) fn aclrtGetCurrentContext(machine: &mut Runtime, context: Out<Handle>) -> Outcome {
    context.check()?;
    let current = machine.current()?;
    context.handle(current)
}
