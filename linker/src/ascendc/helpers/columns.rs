//! Passes over whole columns of a token.

use super::append::APPEND;
use super::basic::{WHOLE, call};
use super::words::AND_WORD;
use crate::aiv::{
    Act, Asks, BARRIER, Call, Expr, Helper, HelperCall, Operation, Outcome, Place, SELECT_SCRATCH,
    Tensor, Use, ub, v, word,
};
use crate::cost::setting::{Load, Setting, wait};
use crate::cost::{Unit, Work};

/// A mask over a whole column.
pub static FITS: Helper =
    Helper::inner("Fits", include_str!("fits.h.in"), &[Use::Buffer("keep"), Use::Searches]);

/// Sorts out the ids of a shared token that no core found.
pub static SORT_OUT: Helper = Helper {
    name: "SortOut",
    text: include_str!("sort_out.h.in"),
    uses: &[
        Use::Helper(&APPEND),
        Use::Helper(&FITS),
        Use::Helper(&WHOLE),
        Use::Buffer("scratch"),
        Use::Buffer("iota"),
        Use::Searches,
    ],
    acts: |call| {
        let [ids_of, lanes, invalid, ids, slots] = [0, 1, 3, 5, 6].map(|n| call.place(n));
        let reads = [&ids_of, &lanes, &invalid, &ids, &slots, &ub("iota")];
        passes(call, true, &reads, &[&ids_of, &lanes, &invalid, &slots])
    },
    asks: Asks::Never,
    in_place: false,
};

/// Appends the slots that live no longer than a lifetime.
pub static APPEND_LOW: Helper = Helper {
    name: "AppendLow",
    text: include_str!("append_low.h.in"),
    uses: &[
        Use::Helper(&APPEND),
        Use::Helper(&AND_WORD),
        Use::Helper(&FITS),
        Use::Helper(&WHOLE),
        Use::Buffer("scratch"),
        Use::Searches,
    ],
    acts: |call| {
        let [list, slots, life] = [0, 2, 4].map(|n| call.place(n));
        passes(call, false, &[&slots, &life, &list], &[&list])
    },
    asks: Asks::Never,
    in_place: false,
};

/// The columns of a list of pending ids and their lanes, a list of ids that are not valid, and a row's ids and slots.
pub struct Row {
    /// Ids that were not found, their lanes, and how many.
    pub missed: [String; 3],
    /// Ids that are not valid, and how many.
    pub invalid: [String; 2],
    /// The row's ids.
    pub ids: String,
    /// Their slots.
    pub slots: String,
}

/// Sorts out `n` ids whose slots are known.
pub fn sort_out(row: Row, n: Expr) -> Call {
    let Row { missed: [missed, lanes, missed_len], invalid: [invalid, invalid_len], ids, slots } =
        row;
    let args = vec![
        Tensor::named(missed).into(),
        Tensor::named(lanes).into(),
        Expr::name(missed_len).into(),
        Tensor::named(invalid).into(),
        Expr::name(invalid_len).into(),
        Tensor::named(ids).into(),
        Tensor::named(slots).into(),
        n.into(),
    ];
    call(&SORT_OUT, args, Outcome::None)
}

/// Appends those of `n` slots that live no longer than `t`. `slot_word` has the bits of a slot.
pub fn append_low(
    (list, len): (String, String),
    [slots, life]: [String; 2],
    [n, t]: [Expr; 2],
    slot_word: u32,
) -> Call {
    let args = vec![
        Tensor::named(list).into(),
        Expr::name(&len).into(),
        Tensor::named(slots).into(),
        n.into(),
        Tensor::named(life).into(),
        t.into(),
    ];
    let mut call = call(&APPEND_LOW, args, Outcome::Increase(len));
    if let Operation::Helper(call) = &mut call.operation {
        call.words = vec![slot_word];
    }
    call
}

/// What happens where a helper makes what it writes in scratch memory, in any number of passes; `waits`: each
/// for the last.
pub fn passes(call: &HelperCall, waits: bool, reads: &[&Place], writes: &[&Place]) -> Vec<Act> {
    let words: Vec<Place> = call.words.iter().map(|&bits| ub(&word(bits))).collect();
    let [scratch, keep, select] = [ub("scratch"), ub("keep"), ub(SELECT_SCRATCH)];
    let reads = reads.iter().copied();
    let all: Vec<&Place> = words.iter().chain(reads).chain([&scratch, &keep]).collect();
    let once = [v(&all, &[&scratch, &keep, &select]), BARRIER, v(&[&scratch, &keep], writes)];
    let again = [&once[..], &[BARRIER], &once, &[BARRIER]].concat();
    vec![Act::Maybe(if waits { again } else { once.to_vec() })]
}

/// Numbers, three ops and three lists.
pub fn sort_out_work(setting: &Setting, load: &Load) -> Work {
    work(setting, load, 9, 0, (6, 2.0))
}

/// Six ops, a gather, and what is found closed up.
pub fn append_low_work(setting: &Setting, load: &Load) -> Work {
    work(setting, load, 7, 1, (7, 1.0))
}

fn work(
    setting: &Setting,
    load: &Load,
    ops: usize,
    gathers: usize,
    (barriers, looks): (i32, f64),
) -> Work {
    let (wide, tile) = (setting.wide as usize, setting.tile as usize);
    let step = if load.lanes <= wide { wide } else { tile };
    let pass = |lanes: usize| {
        Work::vector(ops, lanes)
            + Work::gathers(gathers, lanes)
            + wait() * looks
            + Work::of(Unit::Barriers, f64::from(barriers))
    };
    (0..load.lanes).step_by(step).map(|at| pass(step.min(load.lanes - at))).sum()
}
