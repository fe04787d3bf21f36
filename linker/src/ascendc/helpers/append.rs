//! Lists that grow by the lanes under a mask.

use super::basic::{COMPACT, call};
use crate::aiv::{
    Act, Argument, Asks, BARRIER, Call, Expr, Helper, HelperCall, Length, Outcome, Tensor, Use, ub,
    v,
};
use crate::cost::setting::{Load, wait};
use crate::cost::{Unit, Work};

/// How many lanes are under a mask.
pub static COUNT: Helper = Helper {
    name: "Count",
    text: include_str!("count.h.in"),
    uses: &[Use::Helper(&COMPACT), Use::Buffer("packed"), Use::Buffer("iota")],
    acts: |call| vec![v(&[&call.place(0), &ub("iota")], &[&ub("packed")])],
    asks: Asks::Always,
    in_place: false,
};

/// The words of a list's last block, and a value's lanes behind them.
pub static COMPACT_AFTER_TAIL: Helper = Helper::inner(
    "CompactAfterTail",
    include_str!("compact_after_tail.h.in"),
    &[Use::Helper(&COMPACT), Use::Buffer("stage"), Use::Buffer("keep")],
);

/// Appends a value's lanes to a column of a list.
pub static APPEND: Helper = Helper {
    name: "Append",
    text: include_str!("append.h.in"),
    uses: &[Use::Helper(&COMPACT), Use::Helper(&COMPACT_AFTER_TAIL), Use::Buffer("packed")],
    acts: |call| append_acts(call, false),
    asks: Asks::IfTaken,
    in_place: false,
};

/// The same where the list grows in the value's own place.
pub static APPEND_IN_PLACE: Helper = Helper {
    name: "AppendInPlace",
    text: include_str!("append_in_place.h.in"),
    uses: &[Use::Helper(&COMPACT), Use::Helper(&COMPACT_AFTER_TAIL), Use::Buffer("packed")],
    acts: |call| append_acts(call, true),
    asks: Asks::Always,
    in_place: false,
};

/// Counts the lanes under a mask into a list's length.
pub fn count(len: String, mask: Tensor) -> Call {
    let args = vec![mask.into(), Argument::Length(Length::Lanes)];
    call(&COUNT, args, Outcome::Increase(len))
}

/// Appends with [`APPEND`] or [`APPEND_IN_PLACE`]: to a column of a list of length `len` a value under a mask. `first`: of
/// the list's columns it is the first; `last`: the list is longer now.
pub fn append(
    helper: &'static Helper,
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
        Argument::Flag(first),
    ];
    call(helper, args, if last { Outcome::Increase(len) } else { Outcome::None })
}

fn append_acts(call: &HelperCall, closes: bool) -> Vec<Act> {
    let [list, value, mask] = [0, 2, 3].map(|n| call.place(n));
    let (stage, packed, keep) = (ub("stage"), ub("packed"), ub("keep"));
    let mut behind = vec![v(&[&list], &[&stage, &keep]), BARRIER];
    if closes {
        let pack = v(&[&value, &mask, &stage, &keep], &[&packed]);
        return vec![Act::Maybe(behind), pack, BARRIER, v(&[&packed], &[&list])];
    }
    behind.extend([v(&[&stage, &keep], &[&packed]), BARRIER]);
    vec![Act::Maybe(behind), v(&[&value, &mask, &packed], &[&list])]
}

/// What comes on top where a list of so many columns ends inside a block: two ops for the mask, and for each
/// column its last block, a copy of the value, one of what was packed, and two waits.
pub fn tail_work(load: &Load, columns: usize) -> Work {
    if load.at.is_multiple_of(8) || columns == 0 {
        return Work::default();
    }
    let stage = Work::vector(1, 8) + Work::vector(1, load.lanes);
    let column = stage + Work::chain(1, load.active) + Work::of(Unit::Barriers, 1.0) + wait();
    Work::vector(2, load.lanes.div_ceil(32)) + column * columns as f64
}
