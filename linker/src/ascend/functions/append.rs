//! Appends to lists: the lanes of a vector under a mask.

use super::basic::{COMPACT, call};
use crate::ascend::aiv::{
    Act, Argument, BARRIER, Call, Expr, Function, FunctionCall, Length, Outcome, Tensor, Use, ub, v,
};
use crate::ascend::cost::setting::{Load, wait};
use crate::ascend::cost::{Unit, Work};

/// The number of set bits of a mask.
pub static COUNT: Function = Function {
    name: "Count",
    text: include_str!("count.h.in"),
    uses: &[Use::Function(&COMPACT), Use::Buffer("packed"), Use::Buffer("iota")],
    acts: |call| vec![v(&[&call.place(0), &ub("iota")], &[&ub("packed")]), Act::Count],
    in_place: false,
};

/// The words of a list's last block, followed by the lanes of a value.
pub static COMPACT_AFTER_TAIL: Function = Function::inner(
    "CompactAfterTail",
    include_str!("compact_after_tail.h.in"),
    &[Use::Function(&COMPACT), Use::Buffer("lane_scratch"), Use::Buffer("mask_scratch")],
);

/// Appends the lanes of a value to a column of a list.
pub static APPEND: Function = Function {
    name: "Append",
    text: include_str!("append.h.in"),
    uses: &[Use::Function(&COMPACT), Use::Function(&COMPACT_AFTER_TAIL), Use::Buffer("packed")],
    acts: append_acts,
    in_place: false,
};

/// Appends the lanes of a value to a column of a list that lies in the same memory.
pub static APPEND_IN_PLACE: Function = Function {
    name: "AppendInPlace",
    text: include_str!("append_in_place.h.in"),
    uses: &[Use::Function(&COMPACT), Use::Function(&COMPACT_AFTER_TAIL), Use::Buffer("packed")],
    acts: append_in_place_acts,
    in_place: false,
};

/// Adds the number of lanes under a mask to the length of a list that has no columns.
pub fn count(len: String, mask: Tensor) -> Call {
    let args = vec![mask.into(), Argument::Length(Length::Lanes)];
    call(&COUNT, args, Outcome::Increase(len))
}

/// Appends the lanes of `value` under `mask` to a column of a list whose length is the variable
/// `len`, with [`APPEND`] or [`APPEND_IN_PLACE`]. `first` is set for the first column of the list,
/// and `last` for the last one, whose call increases `len`.
pub fn append(
    function: &'static Function,
    (column, len): (String, String),
    [value, mask]: [Tensor; 2],
    first: bool,
    last: bool,
) -> Call {
    let args = vec![
        Tensor::named(column).into(),
        Expr::name(&len).into(),
        value.into(),
        mask.into(),
        Argument::Length(Length::Lanes),
        Argument::Column { first, last },
    ];
    call(function, args, if last { Outcome::Increase(len) } else { Outcome::None })
}

fn append_acts(call: &FunctionCall) -> Vec<Act> {
    let [list, value, mask] = [0, 2, 3].map(|n| call.place(n));
    let (lanes, packed, joined_mask) = (ub("lane_scratch"), ub("packed"), ub("mask_scratch"));
    let join = v(&[&list], &[&lanes, &joined_mask]);
    let pack = v(&[&lanes, &joined_mask], &[&packed]);
    let tail = vec![join, BARRIER, pack, Act::Count];
    let mut acts = vec![Act::Maybe(tail), v(&[&value, &mask, &packed], &[&list])];
    // The call for the last column returns the number of lanes.
    acts.extend((call.outcome != Outcome::None).then_some(Act::Count));
    acts
}

fn append_in_place_acts(call: &FunctionCall) -> Vec<Act> {
    let [list, value, mask] = [0, 2, 3].map(|n| call.place(n));
    let (lanes, packed, joined_mask) = (ub("lane_scratch"), ub("packed"), ub("mask_scratch"));
    let join = v(&[&list], &[&lanes, &joined_mask]);
    let pack = v(&[&value, &mask, &lanes, &joined_mask], &[&packed]);
    vec![Act::Maybe(vec![join, BARRIER]), pack, Act::Count, v(&[&packed], &[&list])]
}

/// Returns the additional work where a list of this many columns ends inside a block: two
/// instructions for the mask, and for each column a copy of the last block, of the value and of the
/// compacted words, the four repeats of the last block in GatherMask, a barrier and a wait for the
/// count.
pub fn tail_work(load: &Load, columns: usize) -> Work {
    if load.at.is_multiple_of(8) || columns == 0 {
        return Work::default();
    }
    let copies =
        Work::vector(1, 8) + Work::vector(1, load.lanes) + Work::of(Unit::Compactions, 4.0);
    let column = copies + Work::chain(1, load.active) + wait();
    Work::vector(2, load.lanes.div_ceil(32)) + column * columns as f64
}
