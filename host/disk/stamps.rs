//! When records were written, as far as a reader that keeps a copy of one must know.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Result;
use crate::system::reserve;

/// A power of two. A record that shares an entry with one that was written is read a second time.
const ENTRIES: usize = 1 << 15;

/// The number of the last write of each record, with one entry for several records. A write becomes
/// visible to reads before it gets its number.
pub(crate) struct Stamps {
    writes: AtomicU64,
    entries: Box<[AtomicU64]>,
}

impl Stamps {
    /// The bytes of the entries.
    pub const BYTES: usize = ENTRIES * size_of::<u64>();

    pub fn new() -> Result<Self> {
        let entries = reserve::defaults("stamps of writes", ENTRIES)?.into();
        Ok(Self { writes: AtomicU64::new(0), entries })
    }

    fn entry(&self, record: usize) -> &AtomicU64 {
        let hash = (record as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        &self.entries[hash as usize % ENTRIES]
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
