//! The parameters that the work of a call depends on.

use super::{Unit, Work};

/// The storage of lifetimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// A column of halfs in UB, as emitted: 128 per repeat, and compares work on them.
    Narrow,
    /// The top byte of each 32-bit link, as in the paper's Hash-State: int32 has no compare but EQ,
    /// so a count takes an additional subtraction and sign shift, and a write must read the word
    /// first.
    Packed,
}

/// The widths of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The storage of lifetimes.
    pub life: Life,
    /// S, the slots of a table.
    pub slots: u32,
    /// Lanes of a tile.
    pub tile: u32,
    /// Slots per iteration of `AppendSlots`.
    pub slot_tile: u32,
    /// Slots per iteration over lifetimes.
    pub life_tile: u32,
    /// Words of one of a search's columns.
    pub search_words: u32,
}

/// The size of one execution of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Lanes that it processed.
    pub lanes: usize,
    /// Lanes under its mask.
    pub active: usize,
    /// The length of the list before an append, in words.
    pub at: usize,
}

impl Setting {
    /// Returns the work of `ops` instructions over `slots` lifetimes, `step` at a time. Packed
    /// lifetimes take two more instructions, all on words.
    pub fn passes(&self, slots: usize, step: u32, ops: usize) -> Work {
        let step = step as usize;
        let once = match self.life {
            Life::Narrow => Work::chain(ops, step / 2),
            Life::Packed => Work::chain(ops + 2, step),
        };
        once * slots.div_ceil(step) as f64
    }

    /// Returns the work of one GatherMask over `slots` lifetimes, `step` at a time.
    pub fn compactions(&self, slots: usize, step: u32) -> Work {
        let step = step as usize;
        let once = match self.life {
            Life::Narrow => Work::compaction(step / 2),
            Life::Packed => Work::compaction(step),
        };
        once * slots.div_ceil(step) as f64
    }

    /// Returns the additional scalar accesses of a write of one lifetime.
    pub fn packed(&self) -> f64 {
        f64::from(self.life == Life::Packed)
    }

    /// Returns the ids per iteration of a search, with `links` links for each id; a multiple of 8.
    pub fn search_ids(&self, links: usize) -> usize {
        self.search_words as usize / links / 8 * 8
    }
}

/// Returns the work of `n` scalar accesses.
pub fn scalars(n: f64) -> Work {
    Work::of(Unit::Scalars, n)
}

/// Returns the work of a flag, with which one pipe waits for another.
pub fn wait() -> Work {
    Work::of(Unit::Syncs, 1.0)
}

/// Returns the work of a DMA of `words` words whose latency is waited for `waits` times: 1 for a
/// copy in, 0 for a copy out.
pub fn dma(words: usize, waits: f64) -> Work {
    let bytes = Work::of(Unit::Bytes, 4.0 * words as f64);
    Work::of(Unit::Dmas, 1.0) + bytes + Work::of(Unit::Waits, waits) + wait()
}
