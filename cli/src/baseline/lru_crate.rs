//! The `lru` crate as map and order in one: what a user arrives at who has read its documentation.
//!
//! One hash table instead of two makes it quicker than [`super::HashMapLru`]; it is here so that
//! nobody need ask whether that one is slow for its two tables.

use std::num::NonZeroUsize;

use lru::LruCache;

use super::{Matcher, Miss, check_slots};
use avsg::Result;

/// A map from id to slot with a list of use, hasher and all as `lru` ships it.
#[derive(Debug)]
pub struct LruCrate {
    cache: LruCache<i32, i32>,
}

impl LruCrate {
    /// An empty cache of `slots` rows. With S >= K no id of the running token is ever the oldest.
    pub fn new(slots: usize) -> Result<Self> {
        let slots = check_slots(slots, 1)?;
        Ok(Self { cache: LruCache::new(NonZeroUsize::new(slots).unwrap_or(NonZeroUsize::MIN)) })
    }

    /// A free slot, or that of the oldest row, which the next `put` evicts (and reuses its node).
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
