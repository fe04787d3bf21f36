//! The slots with the smallest lifetimes.

use super::basic::{COMPACT, call};
use crate::ascend::aiv::{
    Act, Argument, BARRIER, Call, Comparison, Expr, Function, FunctionCall, Outcome, Tensor, Use,
    ub, v,
};
use crate::ascend::cost::setting::{Load, Setting, wait};
use crate::ascend::cost::{Unit, Work};

/// Returns the number of slots whose lifetime is at most a threshold.
pub static COUNT_LE: Function = Function::inner(
    "CountLe",
    include_str!("count_le.h.in"),
    &[Use::Function(&COMPACT), Use::Buffer("mask_scratch"), Use::Buffer("scratch"), Use::LifeTile],
);

/// Returns the smallest threshold that the lifetimes of enough slots do not exceed.
pub static FIND_THRESHOLD: Function = Function {
    name: "FindThreshold",
    text: include_str!("find_threshold.h.in"),
    uses: &[Use::Function(&COUNT_LE)],
    acts: |call| {
        let (life, mask, scratch) = (call.place(0), ub("mask_scratch"), ub("scratch"));
        let compact = v(&[&mask, &life], &[&scratch]);
        let iteration = [v(&[&life], &[&mask]), BARRIER, compact, Act::Count];
        vec![Act::Maybe([iteration.clone(), iteration].concat())]
    },
    in_place: false,
};

/// Appends the slots whose lifetime is below, or equals, a threshold to a list.
pub static APPEND_SLOTS: Function = Function {
    name: "AppendSlots",
    text: include_str!("append_slots.h.in"),
    uses: &[
        Use::Function(&COMPACT),
        Use::Buffer("scratch"),
        Use::Buffer("mask_scratch"),
        Use::Buffer("iota"),
        Use::SlotTile,
    ],
    acts: append_acts,
    in_place: false,
};

/// Defines the variable `name`: the smallest threshold that the lifetimes of `need` slots do not
/// exceed. The search starts at `hint`.
pub fn find_threshold(name: String, hint: Expr, need: Expr) -> Call {
    let args = vec![Tensor::named("life").into(), hint.into(), need.into()];
    call(&FIND_THRESHOLD, args, Outcome::Let(name))
}

/// Appends the slots whose lifetime compares by `how` with `t` to a list, until the list has
/// `limit` slots.
pub fn append_slots((list, len): (String, String), how: Comparison, [t, limit]: [Expr; 2]) -> Call {
    let args = vec![
        Tensor::named(list).into(),
        Expr::name(&len).into(),
        Tensor::named("life").into(),
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
    vec![numbers, Act::Maybe([iteration.clone(), iteration].concat()), BARRIER]
}

/// Returns the work of [`find_threshold`], with the barrier before it. `load.lanes` is the number of
/// counts, each of which takes a compare, a compaction and a read of its result per iteration.
pub fn find_threshold_work(setting: &Setting, load: &Load) -> Work {
    let (slots, step) = (setting.slots as usize, setting.life_tile);
    let reads = wait() * f64::from(setting.slots.div_ceil(step));
    let count = setting.passes(slots, step, 1) + setting.compactions(slots, step) + reads;
    count * load.lanes as f64 + Work::of(Unit::Barriers, 1.0)
}

/// Returns the work of [`append_slots`]: the numbers of a tile of slots; then, per tile, a fill, a
/// compare, the last words of the list, a cast and a compaction; and three instructions that turn
/// the result into words of the list.
pub fn append_slots_work(setting: &Setting, load: &Load) -> Work {
    let Setting { slot_tile, tile, .. } = *setting;
    let tiles = load.lanes.div_ceil(slot_tile as usize).max(1) as f64;
    let numbers = 1 + (slot_tile / tile).ilog2() as usize;
    let appended = load.active.div_ceil(tiles as usize);
    let per_tile = setting.passes(slot_tile as usize, slot_tile, 1)
        + setting.compactions(slot_tile as usize, slot_tile)
        + Work::vector(2, 8)
        + Work::chain(1, 8)
        + Work::chain(3, appended)
        + wait();
    Work::chain(numbers, slot_tile as usize / 2 / numbers) + per_tile * tiles
}
