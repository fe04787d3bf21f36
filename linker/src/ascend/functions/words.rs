//! Operations of all lanes with one word, selections of words, and the numbers of lanes.

use super::basic::call;
use crate::ascend::aiv::{
    Argument, BARRIER, Call, Expr, FROM_S, Function, Length, Outcome, SELECT_SCRATCH, Tensor, Use,
    s, ub, v,
};

/// The fields that `AndWord` and `OrWord` have in common.
const WITH_WORD: Function = Function {
    name: "",
    text: "",
    uses: &[],
    acts: |call| vec![v(&[&call.place(1), &call.place(2)], &[&call.place(0)])],
    in_place: true,
};

/// `And` of each lane with one word.
pub static AND_WORD: Function =
    Function { name: "AndWord", text: include_str!("and_word.h.in"), ..WITH_WORD };

/// `Or` of each lane with one word.
pub static OR_WORD: Function =
    Function { name: "OrWord", text: include_str!("or_word.h.in"), ..WITH_WORD };

/// Calls `to = from & word` with [`AND_WORD`], or `to = from | word` with [`OR_WORD`].
pub fn with_word(function: &'static Function, to: Tensor, from: Tensor, word: u32) -> Call {
    let args = vec![to.into(), from.into(), Argument::Word(word), Argument::Length(Length::Lanes)];
    call(function, args, Outcome::None)
}

/// Selects 32-bit lanes by a mask.
pub static SELECT_WORDS: Function = Function {
    name: "SelectWords",
    text: include_str!("select_words.h.in"),
    uses: &[],
    acts: |call| {
        let [to, mask, yes, no] = [0, 1, 2, 3].map(|n| call.place(n));
        vec![v(&[&mask, &yes, &no], &[&to, &ub(SELECT_SCRATCH)])]
    },
    in_place: true,
};

/// Calls `to = mask ? yes : no` for 32-bit lanes.
pub fn select(to: Tensor, mask: Tensor, [yes, no]: [Tensor; 2]) -> Call {
    let mut args: Vec<Argument> = [to, mask, yes, no].map(Argument::from).into();
    args.push(Argument::Length(Length::Lanes));
    call(&SELECT_WORDS, args, Outcome::None)
}

/// Writes the numbers of a tile's lanes to their buffer, once per core.
pub static WRITE_IOTA: Function = Function {
    name: "WriteIota",
    text: include_str!("write_iota.h.in"),
    uses: &[Use::Buffer("iota")],
    acts: |_| {
        let iota = ub("iota");
        let pass = [v(&[&iota], &[&iota]), BARRIER];
        [vec![s(&[], &[&iota]), FROM_S], pass.to_vec(), pass.to_vec()].concat()
    },
    in_place: false,
};

/// Calls [`WRITE_IOTA`].
pub fn write_iota() -> Call {
    call(&WRITE_IOTA, Vec::new(), Outcome::None)
}

/// The numbers of lanes, of which there may be more than in a tile.
pub static INDICES: Function = Function {
    name: "Indices",
    text: include_str!("indices.h.in"),
    uses: &[Use::Buffer("iota")],
    acts: |call| {
        let to = call.place(0);
        vec![v(&[&ub("iota")], &[&to]), BARRIER, v(&[&to], &[&to]), BARRIER]
    },
    in_place: false,
};

/// Calls `to[i] = base + i` for the lanes of a tile of any width.
pub fn indices(to: Tensor, base: Expr) -> Call {
    let args = vec![to.into(), base.into(), Argument::Length(Length::Lanes)];
    call(&INDICES, args, Outcome::None)
}
