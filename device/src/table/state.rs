//! The Hash-State: an id and a lifetime for each slot, and a fingerprint and a slot for each link.
//!
//! The paper packs an entry into 64 bits (Eq. 2): id c (32) | lifetime (8, signed) | invalid (1) |
//! fingerprint (23-m) | slot (m). Here the same bits are in three planes: `id[S]`, `life[S]` (a
//! refresh stores one byte, and victims are found in S bytes and not in 4S), and `link[T]`
//! (invalid, fingerprint, slot), which kernels take apart by shifts and masks.

use crate::machine::Machine;

/// The number of bits that fingerprint and slot take together.
pub const FINGERPRINT_AND_SLOT_BITS: u32 = 23;
/// The invalid bit of a link. A link that was never used is this word.
pub const INVALID: i32 = 1 << FINGERPRINT_AND_SLOT_BITS;
/// The id of a slot that holds nothing.
pub const EMPTY: i32 = -1;
/// The lowest lifetime: that of an empty slot of `wide`, and of a victim of `paper` until it has a
/// link.
pub const DEAD: i8 = i8::MIN;
/// The lowest learned lifetime of a slot that the running step uses, which is that of a new slot: class 0 and
/// level 0 of [`crate::learned`].
pub const NEW: i8 = 112;

/// The words of the header of a table, which is the first line of its memory.
pub mod header {
    /// The number of words in the header: one 64-byte line.
    pub const WORDS: usize = 16;
    /// Word of the generation that the table was built for. A table of zeros, which no engine has, is
    /// empty for a request of any generation but 0.
    pub const GENERATION: i32 = 0;
    /// Word of the number that is one above the largest id that the table may hold.
    pub const TOP: i32 = 1;
    /// Word of the threshold of the last step, where the next bisection starts.
    pub const THRESHOLD: i32 = 2;
    /// Word of the number of steps since the table was emptied. This word and the next ones belong to
    /// learned lifetimes ([`crate::learned::learn`]).
    pub const STEP: i32 = 3;
    /// Word of the lowest lifetime that moves to the next class in this step.
    pub const MOVES_FROM: i32 = 4;
    /// Word of the first slot of this step's sample.
    pub const SAMPLE: i32 = 5;
    /// Word of the first slot of the last step's sample.
    pub const LAST_SAMPLE: i32 = 6;

    /// The names of the first of these words in emitted text.
    pub const NAMES: [(i32, &str); 3] =
        [(GENERATION, "HEADER_GENERATION"), (TOP, "HEADER_TOP"), (THRESHOLD, "HEADER_THRESHOLD")];
}

/// The table of a request, in a machine's memory.
pub struct State<'a, M: Machine> {
    /// The id in each slot, S words.
    pub id: M::Column<'a>,
    /// The lifetime of each slot, S bytes.
    pub life: M::Life<'a>,
    /// The links, T words.
    pub link: M::Column<'a>,
    /// [`header::WORDS`] words in global memory.
    pub header: M::Output<'a>,
    /// What learned lifetimes keep in global memory, see [`crate::learned::part`]; `None` for other
    /// lifetimes.
    pub learned: Option<M::Output<'a>>,
}
