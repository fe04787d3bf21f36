//! Emitted functions that others call.

use crate::ascend::aiv::{Argument, Call, Function, FunctionCall, Length, Operation, Outcome};

/// The larger of two scalars.
pub static SCALAR_MAX: Function =
    Function::inner("ScalarMax", include_str!("scalar_max.h.in"), &[]);

/// Views of a tensor as elements of another type. One text defines all of them.
pub static VIEWS: Function = Function::inner("U32", include_str!("views.h.in"), &[]);

/// Rounds a number of lanes up to whole repeats.
pub static ALIGN_TO_REPEAT: Function =
    Function::inner("AlignToRepeat", include_str!("align_to_repeat.h.in"), &[]);

/// Copies the lanes under a mask to the start of a tensor. Two more functions in its text read their
/// number.
pub static COMPACT: Function = Function::inner("Compact", include_str!("compact.h.in"), &[]);

/// Returns a call of a function that reads no other words than those among its arguments.
pub fn call(function: &'static Function, args: Vec<Argument>, outcome: Outcome) -> Call {
    let words = Vec::new();
    Call::from(Operation::Function(FunctionCall { function, args, outcome, words }))
}

/// Defines `alignedLanes`, the tile's lanes rounded up to whole repeats.
pub fn aligned_lanes() -> Call {
    let lanes = vec![Argument::Length(Length::Lanes)];
    call(&ALIGN_TO_REPEAT, lanes, Outcome::Let("alignedLanes".into()))
}
