//! What the work of a call depends on besides the call.

use super::{Unit, Work};

/// How lifetimes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// As emitted: a column of their own, halfs in UB: 128 to a repeat, compared as they are.
    Narrow,
    /// The top byte of the 32-bit words that the links are: no comparison but EQ, so a count takes a
    /// subtraction and a sign shift more; a write must read the word first.
    Packed,
}

/// A kernel's widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// How lifetimes are kept.
    pub life: Life,
    /// Slots of a table.
    pub slots: u32,
    /// Lanes of a tile.
    pub tile: u32,
    /// Slots that are numbered at once.
    pub run: u32,
    /// Slots that are counted at once.
    pub pass: u32,
    /// Words of a search's column.
    pub span: u32,
}

/// How much a call had to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Lanes that it went over.
    pub lanes: usize,
    /// Lanes under its mask.
    pub active: usize,
    /// How long the list was that it appended to.
    pub at: usize,
}

impl Setting {
    /// Passes over lifetimes, of `step` slots and so many ops each; packed, two more on words.
    pub fn passes(&self, slots: usize, step: u32, ops: usize) -> Work {
        let step = step as usize;
        let once = match self.life {
            Life::Narrow => Work::chain(ops, step / 2),
            Life::Packed => Work::chain(ops + 2, step),
        };
        once * slots.div_ceil(step) as f64
    }

    /// What a write of one packed lifetime takes on top.
    pub fn packed(&self) -> f64 {
        f64::from(self.life == Life::Packed)
    }

    /// How many ids of so many links each a search takes at once.
    pub fn chunk(&self, links: usize) -> usize {
        self.span as usize / links / 8 * 8
    }
}

/// Scalar accesses.
pub fn scalars(n: f64) -> Work {
    Work::of(Unit::Scalars, n)
}

/// A wait of one pipe for another.
pub fn wait() -> Work {
    Work::of(Unit::Syncs, 1.0)
}

/// A transfer of so many words. What comes is waited for, what goes is not.
pub fn dma(words: usize, waits: f64) -> Work {
    let bytes = Work::of(Unit::Bytes, 4.0 * words as f64);
    Work::of(Unit::Dmas, 1.0) + bytes + Work::of(Unit::Waits, waits) + wait()
}
