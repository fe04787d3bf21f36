//! The operator's persistent table, written by hand for a scalar core.
//!
//! It is an open-addressing map from id to slot at a load of 1/4 with linear probing, and one byte of
//! lifetime per slot. A hit is one probe and one byte store. The victims are the oldest slots, found
//! by a threshold over the bytes. An evicted id is removed from the map immediately, so no mapping is
//! lost or stale: the policy is exact LRU as far as a byte distinguishes ages (255 steps). The
//! compiler may vectorise the passes over the bytes.

use super::{Matcher, Miss, check_slots};
use avsg::Result;

/// The mark of an empty map entry and of an empty slot.
const EMPTY: i32 = -1;
/// The lifetime of a slot that the running step uses.
const IN_USE: u8 = u8::MAX;
/// Map entries per slot.
const SPREAD: usize = 4;

/// The map, the lifetimes and the scratch arrays of a step.
#[derive(Debug)]
pub struct ScalarTable {
    /// The (id, slot) entries of the map; their number is a power of two.
    links: Vec<(i32, i32)>,
    /// 32 - log2 of the number of entries.
    shift: u32,
    /// The id in each slot.
    id_at: Vec<i32>,
    /// The lifetime of each slot; 0 is the oldest.
    lifetime: Vec<u8>,
    /// The threshold of the last step with misses.
    threshold: u8,
    victims: Vec<u32>,
}

impl ScalarTable {
    /// Creates an empty buffer of `slots` rows.
    pub fn new(slots: usize) -> Result<Self> {
        let slots = check_slots(slots, 1)?;
        let links = (SPREAD * slots).next_power_of_two();
        Ok(Self {
            links: vec![(EMPTY, 0); links],
            shift: 32 - links.ilog2(),
            id_at: vec![EMPTY; slots],
            lifetime: vec![0; slots],
            threshold: 0,
            // A block of 32 victims may be added before the list is cut.
            victims: Vec::with_capacity(slots + 32),
        })
    }

    #[inline]
    fn home(&self, id: i32) -> usize {
        // Fibonacci hashing uses the high bits of the product.
        ((id as u32).wrapping_mul(2_654_435_769) >> self.shift) as usize
    }

    /// Returns the entry of `id` in the map, or the empty entry for it. There is always an empty entry
    /// at a load of 1/4.
    #[inline]
    fn entry(&self, id: i32) -> usize {
        let mask = self.links.len() - 1;
        let mut at = self.home(id);
        while self.links[at].0 != id && self.links[at].0 != EMPTY {
            at = (at + 1) & mask;
        }
        at
    }

    /// Removes an id and closes the gap, so that later probes do not pass deleted entries.
    fn remove(&mut self, id: i32) {
        let mask = self.links.len() - 1;
        let mut gap = self.entry(id);
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let next = self.links[at];
            if next.0 == EMPTY {
                break;
            }
            // The entry may move back to the gap unless its home lies after the gap.
            let from_home = at.wrapping_sub(self.home(next.0)) & mask;
            if from_home >= at.wrapping_sub(gap) & mask {
                self.links[gap] = next;
                gap = at;
            }
        }
        self.links[gap].0 = EMPTY;
    }

    /// Counts the slots with a lifetime of `t` or less.
    fn count_up_to(&self, t: u8) -> usize {
        // Sums in bytes let the compiler emit a vector compare and subtract.
        let count =
            |block: &[u8]| block.iter().map(|&lifetime| u8::from(lifetime <= t)).sum::<u8>();
        self.lifetime.chunks(128).map(|block| usize::from(count(block))).sum()
    }

    /// Returns the least t such that at least `need` slots have a lifetime of t or less. The search
    /// starts at the last step's threshold, which is mostly right, as successive steps are similar.
    fn threshold(&self, need: usize) -> u8 {
        let last = self.threshold;
        let (mut low, mut high) = if self.count_up_to(last) < need {
            (last.saturating_add(1), IN_USE)
        } else if last == 0 || self.count_up_to(last - 1) < need {
            return last;
        } else {
            (0, last - 1)
        };
        while low < high {
            let middle = low + (high - low) / 2;
            if self.count_up_to(middle) >= need { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// Lists the `need` oldest slots in `victims`: those below the threshold, then those at it.
    fn choose_victims(&mut self, need: usize) {
        self.victims.clear();
        if need == 0 {
            return;
        }
        self.threshold = self.threshold(need);
        let t = self.threshold;
        for is_victim in [|lifetime: u8, t: u8| lifetime < t, |lifetime: u8, t: u8| lifetime == t] {
            for (block, lifetimes) in self.lifetime.chunks(32).enumerate() {
                // Most blocks have no victim, and the compiler vectorises this test.
                if lifetimes.iter().fold(0, |any, &value| any | u8::from(value <= t)) == 0 {
                    continue;
                }
                let slots = lifetimes.iter().zip(block as u32 * 32..);
                let chosen = slots.filter(|&(&lifetime, _)| is_victim(lifetime, t));
                self.victims.extend(chosen.map(|(_, slot)| slot));
                if self.victims.len() >= need {
                    break;
                }
            }
        }
        self.victims.truncate(need);
    }
}

impl Matcher for ScalarTable {
    fn step(&mut self, ids: &[i32], slots: &mut [i32], misses: &mut Vec<Miss>) {
        misses.clear();
        self.lifetime.iter_mut().for_each(|lifetime| *lifetime = lifetime.saturating_sub(1));
        for (index, (&id, out)) in ids.iter().zip(slots.iter_mut()).enumerate() {
            *out = -1;
            if id < 0 {
                continue;
            }
            let (linked, slot) = self.links[self.entry(id)];
            if linked == id {
                self.lifetime[slot as usize] = IN_USE;
                *out = slot;
            } else {
                misses.push(Miss { index: index as i32, id, slot: -1 });
            }
        }
        self.choose_victims(misses.len());
        let mut taken = 0;
        misses.retain_mut(|miss| {
            // An id that has become resident is the repetition of a miss.
            let (linked, slot) = self.links[self.entry(miss.id)];
            if linked == miss.id {
                slots[miss.index as usize] = slot;
                return false;
            }
            // A token of more than S ids runs out of victims. The row is then not kept.
            let Some(&slot) = self.victims.get(taken) else { return true };
            taken += 1;
            let old = std::mem::replace(&mut self.id_at[slot as usize], miss.id);
            if old != EMPTY {
                self.remove(old);
            }
            let at = self.entry(miss.id);
            self.links[at] = (miss.id, slot as i32);
            self.lifetime[slot as usize] = IN_USE;
            (miss.slot, slots[miss.index as usize]) = (slot as i32, slot as i32);
            true
        });
    }
}
