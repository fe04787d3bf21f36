//! What other helpers are made of.

use crate::aiv::{Argument, Call, Helper, HelperCall, Length, Operation, Outcome};

/// The larger of two scalars.
pub static MOST: Helper = Helper::inner("Most", include_str!("most.h.in"), &[]);

/// Views of a tensor as another type.
pub static VIEWS: Helper = Helper::inner("U32", include_str!("views.h.in"), &[]);

/// Where the last repeat ends.
pub static WHOLE: Helper = Helper::inner("Whole", include_str!("whole.h.in"), &[]);

/// Closes lanes up.
pub static PACK: Helper = Helper::inner("Pack", include_str!("pack.h.in"), &[]);

/// A call of a helper.
pub fn call(helper: &'static Helper, args: Vec<Argument>, outcome: Outcome) -> Call {
    let words = Vec::new();
    Call::from(Operation::Helper(HelperCall { helper, args, outcome, words }))
}

/// The tile's lanes up to a whole repeat, as a variable.
pub fn whole() -> Call {
    call(&WHOLE, vec![Argument::Length(Length::Lanes)], Outcome::Let("whole".into()))
}
