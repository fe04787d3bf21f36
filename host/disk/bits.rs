//! A bit for each row or record, which threads read without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Result;
use crate::system::reserve;

#[derive(Debug)]
pub(crate) struct Bits {
    words: Vec<AtomicU64>,
}

impl Bits {
    /// Returns bits that are all `value`.
    pub fn new(what: &'static str, bits: usize, value: bool) -> Result<Self> {
        let count = Self::words_for(bits);
        let words = (0..count).map(|_| AtomicU64::new(if value { u64::MAX } else { 0 }));
        Ok(Self { words: reserve::collected(what, count, words)? })
    }

    /// Returns the number of words that hold so many bits.
    pub fn words_for(bits: usize) -> usize {
        bits.div_ceil(64)
    }

    /// Returns a bit. What was written before the bit was set is visible afterwards.
    pub fn get(&self, bit: usize) -> bool {
        self.words[bit / 64].load(Ordering::Acquire) >> (bit % 64) & 1 == 1
    }

    pub fn set(&self, bit: usize) {
        self.words[bit / 64].fetch_or(1 << (bit % 64), Ordering::Release);
    }

    pub fn clear(&self, bit: usize) {
        self.words[bit / 64].fetch_and(!(1 << (bit % 64)), Ordering::Release);
    }
}
