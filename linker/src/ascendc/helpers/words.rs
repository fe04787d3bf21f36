//! Bits of lanes with one word, and the numbers of lanes.

use super::basic::call;
use crate::aiv::{
    Argument, Asks, BARRIER, Call, Expr, Helper, Length, Outcome, Tensor, Use, ub, v,
};

/// What both helpers share.
const WITH_WORD: Helper = Helper {
    name: "",
    text: "",
    uses: &[],
    acts: |call| vec![v(&[&call.place(1), &call.place(2)], &[&call.place(0)])],
    asks: Asks::Never,
    in_place: true,
};

/// `And` with one word.
pub static AND_WORD: Helper =
    Helper { name: "AndWord", text: include_str!("and_word.h.in"), ..WITH_WORD };

/// `Or` with one word.
pub static OR_WORD: Helper =
    Helper { name: "OrWord", text: include_str!("or_word.h.in"), ..WITH_WORD };

/// `to = from & word`, or with [`OR_WORD`] `from | word`.
pub fn with_word(helper: &'static Helper, to: Tensor, from: Tensor, word: u32) -> Call {
    let args = vec![to.into(), from.into(), Argument::Word(word), Argument::Length(Length::Lanes)];
    call(helper, args, Outcome::None)
}

/// The numbers of more lanes than a tile has.
pub static INDICES: Helper = Helper {
    name: "Indices",
    text: include_str!("indices.h.in"),
    uses: &[Use::Buffer("iota")],
    acts: |call| {
        let to = call.place(0);
        vec![v(&[&ub("iota")], &[&to]), BARRIER, v(&[&to], &[&to]), BARRIER]
    },
    asks: Asks::Never,
    in_place: false,
};

/// `to[i] = base + i` for the live lanes, however many they are.
pub fn indices(to: Tensor, base: Expr) -> Call {
    let args = vec![to.into(), base.into(), Argument::Length(Length::Lanes)];
    call(&INDICES, args, Outcome::None)
}
