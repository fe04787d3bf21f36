//! Searches over all links of a list's ids.

use super::basic::{WHOLE, call};
use super::mix::{BLEND, WORDS};
use super::words::AND_WORD;
use crate::aiv::{
    Act, Asks, BARRIER, Call, Expr, Helper, HelperCall, Operation, Outcome, Place, SELECT_SCRATCH,
    Tensor, Use, ub, v, word,
};
use crate::cost::setting::{Load, Setting};
use crate::cost::{Unit, Work};
use avsg_device::hash::{MIX_BITS, MULTIPLIERS};
use avsg_device::state::FINGERPRINT_AND_SLOT_BITS;

/// A search puts the number of a link on top of so many bits.
pub const FOUND_BITS: u32 = 20;

/// A column in scratch memory.
pub static COLUMN: Helper =
    Helper::inner("Column", include_str!("column.h.in"), &[Use::Buffer("scratch"), Use::Searches]);

/// A mask over a whole column.
pub static FITS: Helper =
    Helper::inner("Fits", include_str!("fits.h.in"), &[Use::Buffer("keep"), Use::Searches]);

/// What an id's links hold.
pub static FOLLOW: Helper = Helper::inner(
    "Follow",
    include_str!("follow.h.in"),
    &[Use::Helper(&COLUMN), Use::Helper(&AND_WORD), Use::Searches],
);

/// Which link comes first.
pub static RANK: Helper = Helper::inner("Rank", include_str!("rank.h.in"), &[Use::Searches]);

/// The first link under a mask.
pub static FIRST: Helper = Helper::inner(
    "First",
    include_str!("first.h.in"),
    &[Use::Helper(&FITS), Use::Helper(&AND_WORD), Use::Searches],
);

/// The slots of ids.
pub static FIND: Helper = Helper {
    name: "Find",
    text: include_str!("find.h.in"),
    uses: &[
        Use::Helper(&COLUMN),
        Use::Helper(&FOLLOW),
        Use::Helper(&AND_WORD),
        Use::Helper(&RANK),
        Use::Helper(&FITS),
        Use::Helper(&FIRST),
        Use::Helper(&WHOLE),
        Use::Searches,
    ],
    acts: |call| {
        let [slot, sequence, sought, link, id] = [0, 1, 2, 4, 5].map(|n| call.place(n));
        // A round begins where nothing of the last one lies.
        passes(call, false, &[&sequence, &sought, &link, &id], &[&slot])
    },
    asks: Asks::Never,
    in_place: false,
};

/// Links whose id left its slot.
pub static FIND_FREE: Helper = Helper {
    name: "FindFree",
    text: include_str!("find_free.h.in"),
    uses: &[
        Use::Helper(&COLUMN),
        Use::Helper(&FOLLOW),
        Use::Helper(&AND_WORD),
        Use::Helper(&BLEND),
        Use::Helper(&RANK),
        Use::Helper(&FITS),
        Use::Helper(&FIRST),
        Use::Helper(&WHOLE),
        Use::Searches,
    ],
    acts: |call| {
        let [at, sequence, link, id] = [0, 1, 3, 4].map(|n| call.place(n));
        passes(call, true, &[&sequence, &link, &id], &[&at])
    },
    asks: Asks::Never,
    in_place: false,
};

/// What happens where a helper makes what it writes in scratch memory, in any number of passes; `waits`: each
/// for the last.
fn passes(call: &HelperCall, waits: bool, reads: &[&Place], writes: &[&Place]) -> Vec<Act> {
    let words: Vec<Place> = call.words.iter().map(|&bits| ub(&word(bits))).collect();
    let [scratch, keep, select] = [ub("scratch"), ub("keep"), ub(SELECT_SCRATCH)];
    let reads = reads.iter().copied();
    let all: Vec<&Place> = words.iter().chain(reads).chain([&scratch, &keep]).collect();
    let once = [v(&all, &[&scratch, &keep, &select]), BARRIER, v(&[&scratch, &keep], writes)];
    let again = [&once[..], &[BARRIER], &once, &[BARRIER]].concat();
    vec![Act::Maybe(if waits { again } else { once.to_vec() })]
}

/// The numbers of a table that its searches use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Links of an id.
    pub links: u32,
    /// Bits of a link's position.
    pub link_bits: u32,
    /// Bits of a slot.
    pub slot_bits: u32,
}

impl Shape {
    /// Where a print lies in the mixed word.
    pub fn fingerprint_shift(self) -> u32 {
        MIX_BITS - self.fingerprint_bits()
    }

    fn fingerprint_bits(self) -> u32 {
        FINGERPRINT_AND_SLOT_BITS - self.slot_bits
    }

    /// The words that searches mask with: position, slot, print, what was found.
    pub fn words(self) -> [(&'static str, u32); 4] {
        let low = |bits: u32| (1 << bits) - 1;
        [
            ("POSITION_WORD_AT", low(self.link_bits)),
            ("SLOT_WORD_AT", low(self.slot_bits)),
            ("FINGERPRINT_WORD_AT", low(self.fingerprint_bits())),
            ("FOUND_WORD_AT", low(FOUND_BITS)),
        ]
    }
}

/// For each of `n` ids and its probe sequence the slot that holds it.
pub fn find(columns: [String; 5], n: Expr, shape: Shape) -> Call {
    let [slot, sequence, sought, link, id] = columns.map(Tensor::named);
    let args = vec![slot.into(), sequence.into(), sought.into(), n.into(), link.into(), id.into()];
    let words = shape.words().map(|(_, word)| word);
    with_words(call(&FIND, args, Outcome::None), words.into())
}

/// For each of `n` probe sequences a link that no id in a slot has.
pub fn find_free(columns: [String; 4], n: Expr, shape: Shape) -> Call {
    let [at, sequence, link, id] = columns.map(Tensor::named);
    let (p, q) = MULTIPLIERS[0];
    let numbers = [p, q].map(|n| Expr::from(n).into());
    let mut args = vec![at.into(), sequence.into(), n.into(), link.into(), id.into()];
    args.extend(numbers);
    let words = shape.words().into_iter().map(|(_, word)| word).chain(WORDS).collect();
    with_words(call(&FIND_FREE, args, Outcome::None), words)
}

fn with_words(mut call: Call, words: Vec<u32>) -> Call {
    if let Operation::Helper(call) = &mut call.operation {
        call.words = words;
    }
    call
}

/// Rounds that look at all links of some ids at once.
pub fn work(setting: &Setting, load: &Load, find: bool, links: usize) -> Work {
    let chunk = setting.chunk(links);
    let mut sum = Work::default();
    for round in 0..load.lanes.div_ceil(chunk) {
        let step = (load.lanes - round * chunk).min(chunk).next_multiple_of(8);
        sum += round_work(find, links, step);
    }
    sum
}

/// One round over `links` links of `step` ids each, as `Follow`, `Find` or `FindFree`, and `First` have it: the ops
/// over all of them, those over one link's, and the barriers between them.
fn round_work(find: bool, links: usize, step: usize) -> Work {
    let all = links * step;
    let halves = links.next_power_of_two().ilog2() as usize;
    let (wide, narrow, barriers) = if find {
        (6, 7 + 3 * links, 13 + links + halves)
    } else {
        (17, 14 + 2 * links, 24 + links + halves)
    };
    Work::vector(wide, all)
        + Work::vector(narrow, step)
        + Work::vector(halves, all / 2)
        + Work::vector(2, 0)
        + Work::of(Unit::Gathers, 2.0 * all as f64)
        + Work::of(Unit::Barriers, barriers as f64)
}
