//! The batch LRU of HiSparse's base kernel, as scalar code.
//!
//! Each call builds a hash table of the selection and visits all slots in order of use. A slot whose
//! id is selected is a hit, any other may be evicted, and misses take the oldest of the others. The
//! new order of use is: slots that were not selected, misses, hits. The extra page for the newest
//! token and the shortcut for short contexts are left out. Unlike the original, this version accepts
//! padding and repeated ids; a repetition gets the slot of the first occurrence.

use super::{Matcher, Miss, check_slots};
use avsg::{Error, Result};

/// The mark of an empty hash entry and of an empty slot.
const EMPTY: i32 = -1;
/// 2^32 / golden ratio, HiSparse's hash multiplier.
const MULTIPLIER: u32 = 2_654_435_761;

/// The buffer and the scratch arrays of a call.
#[derive(Debug)]
pub struct HiSparse {
    /// The id in each slot.
    id_at: Vec<i32>,
    /// Slots, least recently used first.
    order: Vec<u16>,
    /// The order of use after the running call.
    next_order: Vec<u16>,
    /// Slots that hit in the running call.
    hits: Vec<u16>,
    /// The selected ids: open addressing with linear probing over 2K entries, rounded up to a power of
    /// two.
    keys: Vec<i32>,
    /// The position of each key's first occurrence in the selection.
    values: Vec<u32>,
    /// (position, first position) of each repetition.
    repeated: Vec<(u32, u32)>,
}

impl HiSparse {
    /// Creates an empty buffer of `slots` rows for selections of up to `k` ids.
    pub fn new(slots: usize, k: usize) -> Result<Self> {
        let slots = check_slots(slots, k)?;
        let max = usize::from(u16::MAX) + 1;
        if slots > max {
            let limit =
                format!("it must be at most {max}, as slots have 16 bits in the order of use");
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

    /// Returns the entry of `id` in the hash table, or the empty entry for it. There is always an
    /// empty entry, because at most half of them are filled.
    #[inline]
    fn entry(&self, id: i32) -> usize {
        let mask = self.keys.len() - 1;
        let mut at = (id as u32).wrapping_mul(MULTIPLIER) as usize & mask;
        while self.keys[at] != id && self.keys[at] != EMPTY {
            at = (at + 1) & mask;
        }
        at
    }

    fn hash_selection(&mut self, ids: &[i32]) {
        self.keys.fill(EMPTY);
        self.repeated.clear();
        for (&id, index) in ids.iter().zip(0u32..).filter(|&(&id, _)| id >= 0) {
            let at = self.entry(id);
            if self.keys[at] == id {
                self.repeated.push((index, self.values[at]));
            } else {
                (self.keys[at], self.values[at]) = (id, index);
            }
        }
    }

    /// Writes the slots of hits into `slots`, and lists the other slots in `next_order`.
    fn scan(&mut self, slots: &mut [i32]) {
        self.hits.clear();
        self.next_order.clear();
        for &slot in &self.order {
            let id = self.id_at[usize::from(slot)];
            let at = if id == EMPTY { None } else { Some(self.entry(id)) };
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
        // A selection that is longer than the constructor's K is cut to the size of the hash table.
        let n = ids.len().min(slots.len()).min(self.keys.len() / 2).min(self.id_at.len());
        slots.fill(-1);
        let ids = &ids[..n];
        self.hash_selection(ids);
        self.scan(slots);
        for &(index, _) in &self.repeated {
            // The value 0 keeps a repetition out of the misses; its slot is set below.
            slots[index as usize] = 0;
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
        // The slots that the misses took are first in `next_order`; they move behind the other slots.
        self.next_order.rotate_left(misses.len());
        self.next_order.extend_from_slice(&self.hits);
        std::mem::swap(&mut self.order, &mut self.next_order);
    }
}
