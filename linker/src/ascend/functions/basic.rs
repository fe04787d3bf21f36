//! Calls of emitted functions.

use crate::ascend::aiv::{Argument, Call, Function, FunctionCall, Operation, Outcome};

/// Returns a call of a function, which reads no words besides those of its nodes.
pub fn call(function: &'static Function, args: Vec<Argument>, outcome: Outcome) -> Call {
    let words = Vec::new();
    Call::from(Operation::Function(FunctionCall { function, args, outcome, words }))
}
