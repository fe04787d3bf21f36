//! The `lru` crate as the map from id to slot and the order of eviction at the same time.
//!
//! It has one hash table where [`super::HashMapLru`] has two, and is therefore faster. The difference
//! between the two baselines shows the cost of the second hash table.

use std::num::NonZeroUsize;

use lru::LruCache;

use super::{Matcher, Miss, check_slots};
use avsg::Result;

/// A map from id to slot in order of use, with the default hasher of `lru`.
#[derive(Debug)]
pub struct LruCrate {
    cache: LruCache<i32, i32>,
}

impl LruCrate {
    /// Creates an empty cache of `slots` rows. With S >= K, an id of the running token is never the
    /// oldest.
    pub fn new(slots: usize) -> Result<Self> {
        let slots = check_slots(slots, 1)?;
        Ok(Self { cache: LruCache::new(NonZeroUsize::new(slots).unwrap_or(NonZeroUsize::MIN)) })
    }

    /// Returns a free slot, or the slot of the oldest row, which the next `put` evicts.
    fn next_slot(&self) -> i32 {
        if self.cache.len() < self.cache.cap().get() {
            return self.cache.len() as i32;
        }
        self.cache.peek_lru().map_or(0, |(_, &slot)| slot)
    }
}

impl Matcher for LruCrate {
    fn step(&mut self, ids: &[i32], slots: &mut [i32], misses: &mut Vec<Miss>) {
        misses.clear();
        for (index, (&id, out)) in ids.iter().zip(slots).enumerate() {
            *out = -1;
            if id < 0 {
                continue;
            }
            if let Some(&slot) = self.cache.get(&id) {
                *out = slot;
                continue;
            }
            let slot = self.next_slot();
            self.cache.put(id, slot);
            *out = slot;
            misses.push(Miss { index: index as i32, id, slot });
        }
    }
}
