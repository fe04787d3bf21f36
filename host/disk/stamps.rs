//! When records were written, as far as a reader that keeps a copy of one must know.

use std::sync::atomic::{AtomicU64, Ordering};

/// A power of two. Records that share an entry cost a second read at most.
const ENTRIES: usize = 4096;

/// The number of the last write of each record, with one entry for several records. A write becomes
/// visible to reads before it gets its number.
pub(super) struct Stamps {
    writes: AtomicU64,
    entries: Box<[AtomicU64; ENTRIES]>,
}

impl Stamps {
    pub fn new() -> Self {
        let entries = Box::new([const { AtomicU64::new(0) }; ENTRIES]);
        Self { writes: AtomicU64::new(0), entries }
    }

    fn entry(&self, record: usize) -> &AtomicU64 {
        &self.entries
            [(record as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) as usize >> 52 & (ENTRIES - 1)]
    }

    /// Notes a write of a record that reads see from now on.
    pub fn written(&self, record: usize) {
        let number = self.writes.fetch_add(1, Ordering::AcqRel) + 1;
        self.entry(record).fetch_max(number, Ordering::AcqRel);
    }

    /// Returns the number of writes so far. What is read after the call contains them.
    pub fn now(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    /// Returns whether a record may have been written after `now` had returned this number.
    pub fn written_since(&self, record: usize, stamp: u64) -> bool {
        self.entry(record).load(Ordering::Acquire) > stamp
    }
}
