//! The slots with the smallest lifetimes.

use super::basic::call;
use crate::ascend::aiv::{
    Act, Argument, BARRIER, Call, Comparison, Expr, Function, FunctionCall, Outcome, Tensor, Use,
    ub, v,
};

/// Returns the number of slots whose lifetime is at most a threshold.
pub static COUNT_LE: Function = Function::text(
    "CountLe",
    include_str!("count_le.h.in"),
    &[Use::Buffer("mask_scratch"), Use::Buffer("scratch"), Use::Constant("LIFE_TILE")],
    |_| Vec::new(),
);

/// Returns the smallest threshold that the lifetimes of enough slots do not exceed.
pub static FIND_THRESHOLD: Function = Function::text(
    "FindThreshold",
    include_str!("find_threshold.h.in"),
    &[Use::Function(&COUNT_LE)],
    |call| {
        let (life, mask, scratch) = (call.place(0), ub("mask_scratch"), ub("scratch"));
        let compact = v(&[&mask, &life], &[&scratch]);
        let iteration = [v(&[&life], &[&mask]), BARRIER, compact, Act::Count];
        vec![Act::Either(Vec::new(), [iteration.clone(), iteration].concat())]
    },
);

/// Appends the slots whose lifetime is below, or equals, a threshold to a list.
pub static APPEND_SLOTS: Function = Function::text(
    "AppendSlots",
    include_str!("append_slots.h.in"),
    &[
        Use::Buffer("scratch"),
        Use::Buffer("mask_scratch"),
        Use::Buffer("iota"),
        Use::Constant("SLOT_TILE"),
    ],
    append_acts,
);

/// Defines the variable `name`: the smallest threshold that the lifetimes of `need` slots do not
/// exceed. The search starts at `hint`.
pub fn find_threshold(name: String, life: String, hint: Expr, need: Expr) -> Call {
    let args = vec![Tensor::named(life).into(), hint.into(), need.into()];
    call(&FIND_THRESHOLD, args, Outcome::Let(name))
}

/// Appends the slots whose lifetime compares by `how` with `t` to a list, until the list has
/// `limit` slots.
pub fn append_slots(
    (list, len): (String, String),
    life: String,
    how: Comparison,
    [t, limit]: [Expr; 2],
) -> Call {
    let args = vec![
        Tensor::named(list).into(),
        Expr::name(&len).into(),
        Tensor::named(life).into(),
        Argument::Comparison(how),
        t.into(),
        limit.into(),
    ];
    call(&APPEND_SLOTS, args, Outcome::Assign(len))
}

fn append_acts(call: &FunctionCall) -> Vec<Act> {
    let (list, life, mask, scratch) =
        (call.place(0), call.place(2), ub("mask_scratch"), ub("scratch"));
    let numbers = v(&[&ub("iota")], &[&scratch]);
    let iteration = [
        [BARRIER, v(&[&life, &list], &[&mask, &scratch])],
        [BARRIER, v(&[&scratch], &[&scratch])],
        [BARRIER, v(&[&scratch, &mask], &[&scratch])],
        [Act::Count, v(&[&scratch], &[&list])],
        [BARRIER, v(&[&list], &[&list])],
        [BARRIER, v(&[&list], &[&list])],
    ]
    .concat();
    vec![numbers, Act::Either(Vec::new(), [iteration.clone(), iteration].concat()), BARRIER]
}
