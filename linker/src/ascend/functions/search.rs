//! Searches that examine all links of several ids at once.

use super::basic::{ALIGN_TO_REPEAT, call};
use super::mix::{SUM_OF_PRODUCTS, WORDS, multipliers};
use super::words::AND_WORD;
use crate::ascend::aiv::{
    Act, Argument, BARRIER, Call, Expr, Function, FunctionCall, Operation, Outcome, Place,
    SELECT_SCRATCH, Tensor, Use, ub, v, word,
};
use crate::ascend::cost::setting::{Load, Setting};
use crate::ascend::cost::{Unit, Work};
use avsg_device::hash::{MIX_BITS, MULTIPLIERS};
use avsg_device::state::FINGERPRINT_AND_SLOT_BITS;

/// Bits of the result of a search. The priority of the link is stored above them.
pub const RESULT_BITS: u32 = 20;

/// Returns one of the three columns of a search in scratch memory.
pub static SEARCH_COLUMN: Function = Function::inner(
    "SearchColumn",
    include_str!("search_column.h.in"),
    &[Use::Buffer("scratch"), Use::Searches],
);

/// Returns the mask over a column of a search.
pub static LINK_MASK: Function = Function::inner(
    "LinkMask",
    include_str!("link_mask.h.in"),
    &[Use::Buffer("mask_scratch"), Use::Searches],
);

/// Gathers all links of some probe sequences.
pub static GATHER_LINKS: Function = Function::inner(
    "GatherLinks",
    include_str!("gather_links.h.in"),
    &[Use::Function(&SEARCH_COLUMN), Use::Function(&AND_WORD), Use::Searches],
);

/// Returns the priority of a link by its number in the probe sequence.
pub static LINK_PRIORITY: Function =
    Function::inner("LinkPriority", include_str!("link_priority.h.in"), &[Use::Searches]);

/// Selects the result of the first link under the mask of a search.
pub static SELECT_FIRST_LINK: Function = Function::inner(
    "SelectFirstLink",
    include_str!("select_first_link.h.in"),
    &[Use::Function(&LINK_MASK), Use::Function(&AND_WORD), Use::Searches],
);

/// Finds the slots that contain ids.
pub static FIND: Function = Function {
    name: "Find",
    text: include_str!("find.h.in"),
    uses: &[
        Use::Function(&SEARCH_COLUMN),
        Use::Function(&GATHER_LINKS),
        Use::Function(&AND_WORD),
        Use::Function(&LINK_PRIORITY),
        Use::Function(&LINK_MASK),
        Use::Function(&SELECT_FIRST_LINK),
        Use::Function(&ALIGN_TO_REPEAT),
        Use::Searches,
    ],
    acts: |call| {
        let [slot, sequence, sought, link, id] = [0, 1, 2, 4, 5].map(|n| call.place(n));
        // An iteration starts with columns that the last instruction of the one before does not
        // use.
        iterations(call, false, &[&sequence, &sought, &link, &id], &[&slot])
    },
    in_place: false,
};

/// Finds links that may be overwritten, because the id that they were written for has left its
/// slot.
pub static FIND_FREE: Function = Function {
    name: "FindFree",
    text: include_str!("find_free.h.in"),
    uses: &[
        Use::Function(&SEARCH_COLUMN),
        Use::Function(&GATHER_LINKS),
        Use::Function(&AND_WORD),
        Use::Function(&SUM_OF_PRODUCTS),
        Use::Function(&LINK_PRIORITY),
        Use::Function(&LINK_MASK),
        Use::Function(&SELECT_FIRST_LINK),
        Use::Function(&ALIGN_TO_REPEAT),
        Use::Searches,
    ],
    acts: |call| {
        let [at, sequence, link, id] = [0, 1, 3, 4].map(|n| call.place(n));
        iterations(call, true, &[&sequence, &link, &id], &[&at])
    },
    in_place: false,
};

/// Returns the acts of a search, which computes its result in scratch memory, in any number of
/// iterations. If `waits` is set, each iteration waits for the one before.
fn iterations(call: &FunctionCall, waits: bool, reads: &[&Place], writes: &[&Place]) -> Vec<Act> {
    let words: Vec<Place> = call.words.iter().map(|&bits| ub(&word(bits))).collect();
    let [scratch, mask, select] = [ub("scratch"), ub("mask_scratch"), ub(SELECT_SCRATCH)];
    let reads = reads.iter().copied();
    let all: Vec<&Place> = words.iter().chain(reads).chain([&scratch, &mask]).collect();
    let once = [v(&all, &[&scratch, &mask, &select]), BARRIER, v(&[&scratch, &mask], writes)];
    let again = [&once[..], &[BARRIER], &once, &[BARRIER]].concat();
    vec![Act::Maybe(if waits { again } else { once.to_vec() })]
}

/// The sizes of a table that its searches use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Links of a probe sequence: R + 1.
    pub links: u32,
    /// Bits of the position of a link.
    pub link_bits: u32,
    /// Bits of a slot: log2 S.
    pub slot_bits: u32,
}

impl Shape {
    /// Returns the lowest bit of the fingerprint in a mixed word.
    pub fn fingerprint_shift(self) -> u32 {
        MIX_BITS - self.fingerprint_bits()
    }

    fn fingerprint_bits(self) -> u32 {
        FINGERPRINT_AND_SLOT_BITS - self.slot_bits
    }

    /// Returns the masks that searches use, with the constants that hold the addresses of their
    /// blocks.
    pub fn words(self) -> [(&'static str, u32); 4] {
        let low = |bits: u32| (1 << bits) - 1;
        [
            ("POSITION_WORD_AT", low(self.link_bits)),
            ("SLOT_WORD_AT", low(self.slot_bits)),
            ("FINGERPRINT_WORD_AT", low(self.fingerprint_bits())),
            ("RESULT_WORD_AT", low(RESULT_BITS)),
        ]
    }
}

/// Calls [`FIND`] for `n` ids with the columns slot, sequence, id sought, link and id.
pub fn find(columns: [String; 5], n: Expr, shape: Shape) -> Call {
    let [slot, sequence, sought, link, id] = columns.map(Tensor::named);
    let args = vec![slot.into(), sequence.into(), sought.into(), n.into(), link.into(), id.into()];
    let words = shape.words().map(|(_, word)| word);
    with_words(call(&FIND, args, Outcome::None), words.into())
}

/// Calls [`FIND_FREE`] for `n` probe sequences with the columns position, sequence, link and id.
pub fn find_free(columns: [String; 4], n: Expr, shape: Shape) -> Call {
    let [at, sequence, link, id] = columns.map(Tensor::named);
    let (p, q) = MULTIPLIERS[0];
    let mut args = vec![at.into(), sequence.into(), n.into(), link.into(), id.into()];
    args.extend(multipliers([p, q]).map(Argument::from));
    let words = shape.words().into_iter().map(|(_, word)| word).chain(WORDS).collect();
    with_words(call(&FIND_FREE, args, Outcome::None), words)
}

fn with_words(mut call: Call, words: Vec<u32>) -> Call {
    if let Operation::Function(call) = &mut call.operation {
        call.words = words;
    }
    call
}

/// Returns the work of a search, whose iterations examine all links of some ids at once.
pub fn work(setting: &Setting, load: &Load, find: bool, links: usize) -> Work {
    let ids = setting.search_ids(links);
    let mut sum = Work::default();
    for n in 0..load.lanes.div_ceil(ids) {
        let lanes = (load.lanes - n * ids).min(ids).next_multiple_of(8);
        sum += iteration_work(find, links, lanes);
    }
    sum
}

/// Returns the work of one iteration of `Find` or `FindFree`, with `GatherLinks` and
/// `SelectFirstLink`, over `lanes` ids of `links` links each: instructions over all links besides
/// the Select, instructions over one link of each id, and barriers.
fn iteration_work(find: bool, links: usize, lanes: usize) -> Work {
    let all = links * lanes;
    let halves = links.next_power_of_two().ilog2() as usize;
    let (wide, narrow, barriers) = if find {
        (5, 7 + 3 * links, 13 + links + halves)
    } else {
        (16, 14 + 2 * links, 24 + links + halves)
    };
    Work::select_or_scalar(all)
        + Work::vector(wide, all)
        + Work::vector(narrow, lanes)
        + Work::vector(halves, all / 2)
        + Work::vector(2, 0)
        + Work::of(Unit::Gathers, 2.0 * all as f64)
        + Work::of(Unit::Barriers, barriers as f64)
}
