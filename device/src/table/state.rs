//! The Hash-State: an id and a lifetime for each slot, and a fingerprint and a slot for each link.
//!
//! The paper packs an entry into 64 bits (Eq. 2): id c (32) | lifetime (8, signed) | invalid (1) |
//! fingerprint (23-m) | slot (m). Here the same bits are in three planes: `id[S]`, `life[S]` (a
//! refresh stores one byte, and victims are found in S bytes and not in 4S), and `link[T]`
//! (invalid, fingerprint, slot). [`Entry`] is the packed form for dumps, tests, snapshots and the C
//! ABI; kernels use the shifts and masks below.

use crate::machine::Machine;
use bitfield::bitfield;

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

bitfield! {
    /// One packed entry. Fingerprint and slot share 23 bits; the boundary depends on m.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub struct Entry(u64);
    impl Debug;
    u32;
    /// The id in the slot of this index, -1 for none.
    pub i32, id, set_id: 63, 32;
    /// The lifetime of the slot of this index.
    pub i8, life, set_life: 31, 24;
    /// Whether the link of this index was never used.
    pub invalid, set_invalid: 23;
    /// Fingerprint (high) and slot (low m bits) of the link of this index.
    pub u32, fingerprint_and_slot, set_fingerprint_and_slot: 22, 0;
}

impl Entry {
    /// Packs an entry from the three planes.
    pub fn pack(id: i32, life: i8, link: i32) -> Self {
        let mut entry = Self(0);
        entry.set_id(id);
        entry.set_life(life);
        entry.set_invalid(link & INVALID != 0);
        entry.set_fingerprint_and_slot((link & (INVALID - 1)) as u32);
        entry
    }

    /// Returns the 64 bits.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Returns the word of the link plane.
    pub fn link(self) -> i32 {
        self.fingerprint_and_slot() as i32 | if self.invalid() { INVALID } else { 0 }
    }

    /// Returns the slot, for m slot bits.
    pub fn slot(self, m: u32) -> u32 {
        self.fingerprint_and_slot() & ((1 << m) - 1)
    }

    /// Returns the fingerprint, for m slot bits.
    pub fn fingerprint(self, m: u32) -> u32 {
        self.fingerprint_and_slot() >> m
    }
}

impl From<u64> for Entry {
    fn from(bits: u64) -> Self {
        Self(bits)
    }
}

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
