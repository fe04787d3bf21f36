//! The straightforward implementation: a `HashMap` from id to slot, and the `lru` crate for the
//! order of eviction.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use lru::LruCache;

use super::{Matcher, Miss, check_slots};
use avsg::Result;

/// The standard map with the standard hasher, and `lru` with its default hasher.
#[derive(Debug)]
pub struct HashMapLru {
    slot_of: HashMap<i32, i32>,
    order: LruCache<i32, ()>,
}

impl HashMapLru {
    /// Creates an empty cache of `slots` rows. With S >= K, an id of the running token is never the
    /// oldest.
    pub fn new(slots: usize) -> Result<Self> {
        let slots = check_slots(slots, 1)?;
        let order = LruCache::new(NonZeroUsize::new(slots).unwrap_or(NonZeroUsize::MIN));
        Ok(Self { slot_of: HashMap::with_capacity(slots), order })
    }

    /// Makes `id` the newest and returns its slot: a free one, or that of the evicted oldest row.
    fn admit(&mut self, id: i32) -> i32 {
        let free = self.order.len() as i32;
        // `push` returns the evicted entry, which has to be removed from the map; `put` drops it.
        let evicted = self.order.push(id, ());
        let slot = evicted.and_then(|(oldest, ())| self.slot_of.remove(&oldest)).unwrap_or(free);
        self.slot_of.insert(id, slot);
        slot
    }
}

impl Matcher for HashMapLru {
    fn step(&mut self, ids: &[i32], slots: &mut [i32], misses: &mut Vec<Miss>) {
        misses.clear();
        for (index, (&id, out)) in ids.iter().zip(slots).enumerate() {
            *out = -1;
            if id < 0 {
                continue;
            }
            if let Some(&slot) = self.slot_of.get(&id) {
                self.order.promote(&id);
                *out = slot;
                continue;
            }
            *out = self.admit(id);
            misses.push(Miss { index: index as i32, id, slot: *out });
        }
    }
}
