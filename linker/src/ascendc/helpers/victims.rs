//! The slots that live least.

use super::basic::{COMPACT, call};
use crate::aiv::{
    Act, Argument, Asks, BARRIER, Call, Comparison, Expr, Helper, HelperCall, Outcome, Tensor, Use,
    ub, v,
};
use crate::cost::setting::{Load, Setting, wait};
use crate::cost::{Unit, Work};

/// How many slots live no longer than a lifetime.
pub static COUNT_LE: Helper = Helper::inner(
    "CountLe",
    include_str!("count_le.h.in"),
    &[Use::Helper(&COMPACT), Use::Buffer("keep"), Use::Buffer("scratch"), Use::Pass],
);

/// The least lifetime that enough slots do not outlive.
pub static LEAST_LIFE: Helper = Helper {
    name: "LeastLife",
    text: include_str!("least_life.h.in"),
    uses: &[Use::Helper(&COUNT_LE)],
    acts: |call| {
        let (life, keep, scratch) = (call.place(0), ub("keep"), ub("scratch"));
        let run = [BARRIER, v(&[&life], &[&keep]), BARRIER, v(&[&keep, &life], &[&scratch])];
        vec![Act::Maybe([run.clone(), run].concat()), BARRIER]
    },
    asks: Asks::Never,
    in_place: false,
};

/// Appends the slots of some lifetimes to a list.
pub static APPEND_SLOTS: Helper = Helper {
    name: "AppendSlots",
    text: include_str!("append_slots.h.in"),
    uses: &[
        Use::Helper(&COMPACT),
        Use::Buffer("scratch"),
        Use::Buffer("keep"),
        Use::Buffer("iota"),
        Use::Run,
    ],
    acts: append_acts,
    asks: Asks::Never,
    in_place: false,
};

/// The least lifetime that `need` slots do not outlive, as a variable; looks beside the hint first.
pub fn least_life(name: String, hint: Expr, need: Expr) -> Call {
    let args = vec![Tensor::named("life").into(), hint.into(), need.into()];
    call(&LEAST_LIFE, args, Outcome::Let(name))
}

/// Appends the slots whose lifetime compares so with `t` to a list, until it has `limit`.
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

fn append_acts(call: &HelperCall) -> Vec<Act> {
    let (list, life, keep, scratch) = (call.place(0), call.place(2), ub("keep"), ub("scratch"));
    let numbers = v(&[&ub("iota")], &[&scratch]);
    let steps = [
        v(&[&life, &list], &[&keep, &scratch]),
        v(&[&scratch], &[&scratch]),
        v(&[&scratch, &keep], &[&scratch]),
        v(&[&scratch], &[&list]),
        v(&[&list], &[&list]),
        v(&[&list], &[&list]),
    ];
    let run = steps.map(|act| [BARRIER, act]).concat();
    vec![numbers, Act::Maybe([run.clone(), run].concat()), BARRIER]
}

/// The search says how often it counts: a compare, a compaction, a look at how many.
pub fn least_life_work(setting: &Setting, load: &Load) -> Work {
    let looks = wait() * f64::from(setting.slots.div_ceil(setting.pass));
    (setting.passes(setting.slots as usize, setting.pass, 2) + looks) * load.lanes as f64
        + Work::of(Unit::Barriers, 1.0)
}

/// Numbers first; then of each run a fill, a compare and the list's last words at once, a cast, the packing; the
/// slots that were found become words of the list in three steps.
pub fn append_slots_work(setting: &Setting, load: &Load) -> Work {
    let Setting { run, tile, .. } = *setting;
    let runs = load.lanes.div_ceil(run as usize).max(1) as f64;
    let numbers = 1 + (run / tile).ilog2() as usize;
    let found = load.active.div_ceil(runs as usize);
    let once = setting.passes(run as usize, run, 2)
        + Work::vector(2, 8)
        + Work::chain(1, 8)
        + Work::chain(3, found)
        + wait();
    Work::chain(numbers, run as usize / 2 / numbers) + once * runs
}
