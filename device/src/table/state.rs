//! The Hash-State: per slot the id that it holds and its lifetime, per link a print and a slot.
//!
//! The paper packs an entry into 64 bits: id c (32) | lifetime (8, signed) | invalid (1) | print (23-m)
//! | slot (m). Here the same bits lie in three planes: `id[S]`, `life[S]` (a refresh is one byte store,
//! and victims are found over S bytes instead of 4S), `link[T]` (invalid, print, slot). [`Entry`] is
//! the packed view, for dumps, tests, snapshots and the C ABI; kernels use the shifts and masks below.

use crate::machine::Machine;
use bitfield::bitfield;

/// Bits that print and slot share.
pub const FINGERPRINT_AND_SLOT_BITS: u32 = 23;
/// The invalid bit of a link, and a link that never held anything.
pub const INVALID: i32 = 1 << FINGERPRINT_AND_SLOT_BITS;
/// The id of a slot that holds nothing.
pub const EMPTY: i32 = -1;
/// The lowest lifetime that there is: of an empty slot of `wide`, of a victim of `paper` until it is linked.
pub const DEAD: i8 = i8::MIN;

bitfield! {
    /// One packed entry. Print and slot share 23 bits; where they part depends on m.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub struct Entry(u64);
    impl Debug;
    u32;
    /// The id that the slot of this index holds, -1 for none.
    pub i32, id, set_id: 63, 32;
    /// The lifetime of the slot of this index.
    pub i8, life, set_life: 31, 24;
    /// Whether the link of this index never held anything.
    pub invalid, set_invalid: 23;
    /// Print (high) and slot (low m bits) of the link of this index.
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

    /// The 64 bits.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The link plane's word.
    pub fn link(self) -> i32 {
        self.fingerprint_and_slot() as i32 | if self.invalid() { INVALID } else { 0 }
    }

    /// The slot, for m slot bits.
    pub fn slot(self, m: u32) -> u32 {
        self.fingerprint_and_slot() & ((1 << m) - 1)
    }

    /// The print, for m slot bits.
    pub fn fingerprint(self, m: u32) -> u32 {
        self.fingerprint_and_slot() >> m
    }
}

impl From<u64> for Entry {
    fn from(bits: u64) -> Self {
        Self(bits)
    }
}

/// Words of a table's header, the first line of its memory.
pub mod header {
    /// Words in the header: one 64-byte line.
    pub const WORDS: usize = 16;
    /// The generation that the table was built for; 0 is none, so a zeroed table is cold.
    pub const GENERATION: i32 = 0;
    /// One above the largest id that the table may hold.
    pub const TOP: i32 = 1;
    /// The last step's threshold, where the next bisection starts.
    pub const THRESHOLD: i32 = 2;
}

/// A request's table, in a machine's memory.
pub struct State<'a, M: Machine> {
    /// Which id each slot holds, S words.
    pub id: M::Column<'a>,
    /// Each slot's lifetime, S bytes.
    pub life: M::Life<'a>,
    /// The links, T words.
    pub link: M::Column<'a>,
    /// [`header::WORDS`] words in global memory.
    pub header: M::Output<'a>,
}
