//! What other helpers are made of.

use crate::aiv::{Argument, Call, Helper, HelperCall, Length, Operation, Outcome};

/// The larger of two scalars.
pub static SCALAR_MAX: Helper = Helper::inner("ScalarMax", include_str!("scalar_max.h.in"), &[]);

/// Views of a tensor as another type.
pub static VIEWS: Helper = Helper::inner("U32", include_str!("views.h.in"), &[]);

/// Where the last repeat ends.
pub static WHOLE: Helper = Helper::inner("Whole", include_str!("whole.h.in"), &[]);

/// Closes lanes up.
pub static COMPACT: Helper = Helper::inner("Compact", include_str!("compact.h.in"), &[]);

/// A call of a helper.
pub fn call(helper: &'static Helper, args: Vec<Argument>, outcome: Outcome) -> Call {
    let words = Vec::new();
    Call::from(Operation::Helper(HelperCall { helper, args, outcome, words }))
}

/// The tile's lanes up to a whole repeat, as a variable.
pub fn whole() -> Call {
    call(&WHOLE, vec![Argument::Length(Length::Lanes)], Outcome::Let("whole".into()))
}
