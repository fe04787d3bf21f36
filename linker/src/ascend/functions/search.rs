//! Searches that examine all links of several ids at once.

use super::basic::call;
use super::mix::{SUM_OF_PRODUCTS, WORDS, multipliers};
use crate::ascend::aiv::{
    Act, Argument, BARRIER, Call, Expr, Function, FunctionCall, Operation, Outcome, Place,
    SELECT_SCRATCH, Tensor, Use, ub, v, word,
};
use avsg_device::hash::{MIX_BITS, MULTIPLIERS};
use avsg_device::state::FINGERPRINT_AND_SLOT_BITS;

/// Bits of the result of a search. The priority of the link is stored above them.
pub const RESULT_BITS: u32 = 20;

/// Returns one of the three columns of a search in scratch memory.
pub static SEARCH_COLUMN: Function = Function::text(
    "SearchColumn",
    include_str!("search_column.h.in"),
    &[Use::Buffer("scratch"), Use::Constant("SEARCH_WORDS")],
    |_| Vec::new(),
);

/// Returns the mask over a column of a search.
pub static LINK_MASK: Function = Function::text(
    "LinkMask",
    include_str!("link_mask.h.in"),
    &[Use::Buffer("mask_scratch"), Use::Constant("SEARCH_WORDS")],
    |_| Vec::new(),
);

/// Gathers all links of some probe sequences.
pub static GATHER_LINKS: Function = Function::text(
    "GatherLinks",
    include_str!("gather_links.h.in"),
    &[
        Use::Function(&SEARCH_COLUMN),
        Use::Constant("LINKS"),
        Use::Constant("LINK_BITS"),
        Use::Constant("POSITION_WORD_AT"),
    ],
    |_| Vec::new(),
);

/// Returns the priority of a link by its number in the probe sequence.
pub static LINK_PRIORITY: Function = Function::text(
    "LinkPriority",
    include_str!("link_priority.h.in"),
    &[Use::Constant("LINKS"), Use::Constant("RESULT_BITS")],
    |_| Vec::new(),
);

/// Selects the result of the first link under the mask of a search.
pub static SELECT_FIRST_LINK: Function = Function::text(
    "SelectFirstLink",
    include_str!("select_first_link.h.in"),
    &[Use::Function(&LINK_MASK), Use::Constant("LINKS"), Use::Constant("RESULT_WORD_AT")],
    |_| Vec::new(),
);

/// Finds the slots that contain ids.
pub static FIND: Function = Function::text(
    "Find",
    include_str!("find.h.in"),
    &[
        Use::Function(&SEARCH_COLUMN),
        Use::Function(&GATHER_LINKS),
        Use::Function(&LINK_PRIORITY),
        Use::Function(&LINK_MASK),
        Use::Function(&SELECT_FIRST_LINK),
        Use::Constant("LINKS"),
        Use::Constant("SEARCH_IDS"),
        Use::Constant("SLOT_WORD_AT"),
    ],
    |call| {
        let [slot, sequence, sought, link, id] = [0, 1, 2, 4, 5].map(|n| call.place(n));
        // An iteration starts with columns that the last instruction of the one before does not
        // use.
        iterations(call, false, &[&sequence, &sought, &link, &id], &[&slot])
    },
);

/// Finds links that may be overwritten, because the id that they were written for has left its
/// slot.
pub static FIND_FREE: Function = Function::text(
    "FindFree",
    include_str!("find_free.h.in"),
    &[
        Use::Function(&SEARCH_COLUMN),
        Use::Function(&GATHER_LINKS),
        Use::Function(&SUM_OF_PRODUCTS),
        Use::Function(&LINK_PRIORITY),
        Use::Function(&LINK_MASK),
        Use::Function(&SELECT_FIRST_LINK),
        Use::Constant("LINKS"),
        Use::Constant("SEARCH_IDS"),
        Use::Constant("LINK_BITS"),
        Use::Constant("SLOT_BITS"),
        Use::Constant("FINGERPRINT_SHIFT"),
        Use::Constant("SLOT_WORD_AT"),
        Use::Constant("FINGERPRINT_WORD_AT"),
        Use::Constant("POSITION_WORD_AT"),
    ],
    |call| {
        let [at, sequence, link, id] = [0, 1, 3, 4].map(|n| call.place(n));
        iterations(call, true, &[&sequence, &link, &id], &[&at])
    },
);

/// Returns the acts of a search, which computes its result in scratch memory, in any number of
/// iterations. If `waits` is set, each iteration waits for the one before.
fn iterations(call: &FunctionCall, waits: bool, reads: &[&Place], writes: &[&Place]) -> Vec<Act> {
    let words: Vec<Place> = call.words.iter().map(|&bits| ub(&word(bits))).collect();
    let [scratch, mask, select] = [ub("scratch"), ub("mask_scratch"), ub(SELECT_SCRATCH)];
    let reads = reads.iter().copied();
    let all: Vec<&Place> = words.iter().chain(reads).chain([&scratch, &mask]).collect();
    let once = [v(&all, &[&scratch, &mask, &select]), BARRIER, v(&[&scratch, &mask], writes)];
    let again = [&once[..], &[BARRIER], &once, &[BARRIER]].concat();
    vec![Act::Either(Vec::new(), if waits { again } else { once.to_vec() })]
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
