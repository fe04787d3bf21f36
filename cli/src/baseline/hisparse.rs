//! Batch LRU as HiSparse's base kernel does it, scalar.
//!
//! Each call hashes the selection anew and walks the whole buffer in order of use: a slot whose id is
//! selected is a hit, any other can be evicted, and misses take the oldest of those. The new order is
//! not selected, misses, hits. Left out are the extra page for the newest token and the shortcut for
//! short contexts. Unlike the original it takes padding and repeated ids; a repetition shares the slot
//! of the first.

use super::{Matcher, Miss, check_slots};
use avsg::{Error, Result};

/// No key, no id.
const EMPTY: i32 = -1;
/// 2^32 / golden ratio, as HiSparse hashes.
const FACTOR: u32 = 2_654_435_761;

/// Buffer state and the scratch of a call.
#[derive(Debug)]
pub struct HiSparse {
    id_at: Vec<i32>,
    /// Slots, least recently used first.
    order: Vec<u16>,
    next_order: Vec<u16>,
    hits: Vec<u16>,
    /// Open addressing over 2K keys (rounded up to a power of two), linear probing; the value is the
    /// position of the id's first occurrence.
    keys: Vec<i32>,
    values: Vec<u32>,
    /// Repetitions: (position, first position).
    repeated: Vec<(u32, u32)>,
}

impl HiSparse {
    /// An empty buffer of `slots` rows for selections of up to `k` ids.
    pub fn new(slots: usize, k: usize) -> Result<Self> {
        let slots = check_slots(slots, k)?;
        let most = usize::from(u16::MAX) + 1;
        if slots > most {
            let limit = format!("the order of use has 16-bit slots: at most {most}");
            return Err(Error::invalid("slots", slots, limit, "choose a smaller buffer"));
        }
        let table = (2 * k.max(1)).next_power_of_two();
        Ok(Self {
            id_at: vec![EMPTY; slots],
            order: (0..slots).map(|slot| slot as u16).collect(),
            next_order: Vec::with_capacity(slots),
            hits: Vec::with_capacity(k),
            keys: vec![EMPTY; table],
            values: vec![0; table],
            repeated: Vec::with_capacity(k),
        })
    }

    /// Where `id` is in the hash, or where it would go. There is always a free place: at most half
    /// of the table is taken.
    #[inline]
    fn place(&self, id: i32) -> usize {
        let mask = self.keys.len() - 1;
        let mut at = (id as u32).wrapping_mul(FACTOR) as usize & mask;
        while self.keys[at] != id && self.keys[at] != EMPTY {
            at = (at + 1) & mask;
        }
        at
    }

    fn hash_selection(&mut self, ids: &[i32]) {
        self.keys.fill(EMPTY);
        self.repeated.clear();
        for (&id, index) in ids.iter().zip(0u32..).filter(|&(&id, _)| id >= 0) {
            let at = self.place(id);
            if self.keys[at] == id {
                self.repeated.push((index, self.values[at]));
            } else {
                (self.keys[at], self.values[at]) = (id, index);
            }
        }
    }

    /// Resolves hits into `slots`; the others go to the new order, both in the old order.
    fn scan(&mut self, slots: &mut [i32]) {
        self.hits.clear();
        self.next_order.clear();
        for &slot in &self.order {
            let id = self.id_at[usize::from(slot)];
            let at = if id == EMPTY { None } else { Some(self.place(id)) };
            match at.filter(|&at| self.keys[at] == id) {
                Some(at) => {
                    slots[self.values[at] as usize] = i32::from(slot);
                    self.hits.push(slot);
                }
                None => self.next_order.push(slot),
            }
        }
    }
}

impl Matcher for HiSparse {
    fn step(&mut self, ids: &[i32], slots: &mut [i32], misses: &mut Vec<Miss>) {
        // A selection over the K of the constructor is cut: the hash holds no more.
        let n = ids.len().min(slots.len()).min(self.keys.len() / 2).min(self.id_at.len());
        slots.fill(-1);
        let ids = &ids[..n];
        self.hash_selection(ids);
        self.scan(slots);
        for &(index, _) in &self.repeated {
            slots[index as usize] = 0; // Not a miss; set below.
        }
        misses.clear();
        for (index, (&id, out)) in ids.iter().zip(slots.iter_mut()).enumerate() {
            if id >= 0 && *out < 0 {
                let slot = self.next_order[misses.len()];
                self.id_at[usize::from(slot)] = id;
                *out = i32::from(slot);
                misses.push(Miss { index: index as i32, id, slot: *out });
            }
        }
        for &(index, first) in &self.repeated {
            slots[index as usize] = slots[first as usize];
        }
        // The evicted slots stand first in the list of the others: move them behind the stale ones.
        self.next_order.rotate_left(misses.len());
        self.next_order.extend_from_slice(&self.hits);
        std::mem::swap(&mut self.order, &mut self.next_order);
    }
}
