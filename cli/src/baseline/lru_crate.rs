//! What a user would build from the `lru` crate with its default hasher.
//!
//! [`LruCrate`] has one hash table where [`HashMapLru`] has two, and is therefore faster. The difference
//! between the two baselines shows the cost of the second hash table.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use lru::LruCache;

use super::{Matcher, Miss, check_slots};
use avsg::Result;

/// A cache that is asked for one id after the other. With S >= K, an id of the running token is never the
/// oldest.
trait Cache {
    /// Makes an id the newest and returns its slot; `None` if it is not resident.
    fn find(&mut self, id: i32) -> Option<i32>;

    /// Makes a missing id the newest and returns its slot: a free one, or that of the evicted oldest row.
    fn admit(&mut self, id: i32) -> i32;
}

impl<C: Cache> Matcher for C {
    fn step(&mut self, ids: &[i32], slots: &mut [i32], misses: &mut Vec<Miss>) {
        misses.clear();
        for (index, (&id, out)) in ids.iter().zip(slots).enumerate() {
            *out = -1;
            if id < 0 {
                continue;
            }
            if let Some(slot) = self.find(id) {
                *out = slot;
                continue;
            }
            *out = self.admit(id);
            misses.push(Miss { index: index as i32, id, slot: *out });
        }
    }
}

fn cache<V>(slots: usize) -> Result<LruCache<i32, V>> {
    let slots = check_slots(slots, 1)?;
    Ok(LruCache::new(NonZeroUsize::new(slots).unwrap_or(NonZeroUsize::MIN)))
}

/// The crate as the map from id to slot and the order of eviction at the same time.
#[derive(Debug)]
pub struct LruCrate(LruCache<i32, i32>);

impl LruCrate {
    /// Creates an empty cache of `slots` rows.
    pub fn new(slots: usize) -> Result<Self> {
        Ok(Self(cache(slots)?))
    }
}

impl Cache for LruCrate {
    fn find(&mut self, id: i32) -> Option<i32> {
        self.0.get(&id).copied()
    }

    fn admit(&mut self, id: i32) -> i32 {
        let free = self.0.len();
        let oldest = || self.0.peek_lru().map_or(0, |(_, &slot)| slot);
        let slot = if free < self.0.cap().get() { free as i32 } else { oldest() };
        self.0.put(id, slot);
        slot
    }
}

/// A standard `HashMap` from id to slot, and the crate for the order of eviction.
#[derive(Debug)]
pub struct HashMapLru {
    slot_of: HashMap<i32, i32>,
    order: LruCache<i32, ()>,
}

impl HashMapLru {
    /// Creates an empty cache of `slots` rows.
    pub fn new(slots: usize) -> Result<Self> {
        Ok(Self { order: cache(slots)?, slot_of: HashMap::with_capacity(slots) })
    }
}

impl Cache for HashMapLru {
    fn find(&mut self, id: i32) -> Option<i32> {
        let slot = self.slot_of.get(&id).copied()?;
        self.order.promote(&id);
        Some(slot)
    }

    fn admit(&mut self, id: i32) -> i32 {
        let free = self.order.len() as i32;
        // `push` returns the evicted entry, which has to be removed from the map; `put` drops it.
        let evicted = self.order.push(id, ());
        let slot = evicted.and_then(|(oldest, ())| self.slot_of.remove(&oldest)).unwrap_or(free);
        self.slot_of.insert(id, slot);
        slot
    }
}
