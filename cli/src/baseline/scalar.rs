//! The persistent table written by hand for a scalar core: the same idea without vectors.
//!
//! An open-addressing map from id to slot at a load of 1/4 with linear probing, and one byte of
//! lifetime a slot. A hit is a probe and a byte store; victims are the oldest slots, found by a
//! threshold over the bytes. An evicted id is taken out of the map at once, so no mapping is lost and
//! nothing is stale: exact LRU as far as a byte can tell ages apart (255 steps). What the compiler
//! vectorises by itself (the passes over the bytes) it may.

use super::{Matcher, Miss, check_slots};
use avsg::Result;

/// No id: no entry of the map, no row in the slot.
const EMPTY: i32 = -1;
/// The lifetime of a slot that the running step uses.
const USED: u8 = u8::MAX;
/// Links per slot.
const SPREAD: usize = 4;

/// The map, the ages and the scratch of a step.
#[derive(Debug)]
pub struct ScalarTable {
    /// (id, slot); a power of two of them.
    links: Vec<(i32, i32)>,
    shift: u32,
    id_at: Vec<i32>,
    life: Vec<u8>,
    /// That of the last step with misses.
    threshold: u8,
    victims: Vec<u32>,
}

impl ScalarTable {
    /// An empty buffer of `slots` rows.
    pub fn new(slots: usize) -> Result<Self> {
        let slots = check_slots(slots, 1)?;
        let links = (SPREAD * slots).next_power_of_two();
        Ok(Self {
            links: vec![(EMPTY, 0); links],
            shift: 32 - links.ilog2(),
            id_at: vec![EMPTY; slots],
            life: vec![0; slots],
            threshold: 0,
            // A block of victims may come in whole before the list is cut.
            victims: Vec::with_capacity(slots + 32),
        })
    }

    #[inline]
    fn home(&self, id: i32) -> usize {
        // Fibonacci hashing: the high bits of a product are the good ones.
        ((id as u32).wrapping_mul(2_654_435_769) >> self.shift) as usize
    }

    /// Where `id` is, or the empty place where it would go. There always is one at a load of 1/4.
    #[inline]
    fn place(&self, id: i32) -> usize {
        let mask = self.links.len() - 1;
        let mut at = self.home(id);
        while self.links[at].0 != id && self.links[at].0 != EMPTY {
            at = (at + 1) & mask;
        }
        at
    }

    /// Takes an id out and closes the gap, so that no tombstones lengthen later probes.
    fn remove(&mut self, id: i32) {
        let mask = self.links.len() - 1;
        let mut gap = self.place(id);
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let next = self.links[at];
            if next.0 == EMPTY {
                break;
            }
            // It may move back to the gap unless its home lies after the gap.
            let from_home = at.wrapping_sub(self.home(next.0)) & mask;
            if from_home >= at.wrapping_sub(gap) & mask {
                self.links[gap] = next;
                gap = at;
            }
        }
        self.links[gap].0 = EMPTY;
    }

    /// How many slots have a lifetime of `t` or less.
    fn up_to(&self, t: u8) -> usize {
        // Bytes are counted in bytes, which the compiler makes a vector compare and subtract.
        let count = |block: &[u8]| block.iter().map(|&life| u8::from(life <= t)).sum::<u8>();
        self.life.chunks(128).map(|block| usize::from(count(block))).sum()
    }

    /// The least t with at least `need` slots up to it. Steps are alike: it is mostly the last one.
    fn threshold(&self, need: usize) -> u8 {
        let last = self.threshold;
        let (mut low, mut high) = if self.up_to(last) < need {
            (last.saturating_add(1), USED)
        } else if last == 0 || self.up_to(last - 1) < need {
            return last;
        } else {
            (0, last - 1)
        };
        while low < high {
            let middle = low + (high - low) / 2;
            if self.up_to(middle) >= need { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// Lists the `need` oldest slots: all below a threshold, then those at it.
    fn choose(&mut self, need: usize) {
        self.victims.clear();
        if need == 0 {
            return;
        }
        self.threshold = self.threshold(need);
        let t = self.threshold;
        for wanted in [|life: u8, t: u8| life < t, |life: u8, t: u8| life == t] {
            for (block, lives) in self.life.chunks(32).enumerate() {
                // Most blocks hold none, and the compiler makes this a few vector instructions.
                if lives.iter().fold(0, |any, &life| any | u8::from(life <= t)) == 0 {
                    continue;
                }
                let slots = lives.iter().zip(block as u32 * 32..);
                self.victims.extend(slots.filter(|&(&life, _)| wanted(life, t)).map(|(_, i)| i));
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
        self.life.iter_mut().for_each(|life| *life = life.saturating_sub(1));
        for (index, (&id, out)) in ids.iter().zip(slots.iter_mut()).enumerate() {
            *out = -1;
            if id < 0 {
                continue;
            }
            let (held, slot) = self.links[self.place(id)];
            if held == id {
                self.life[slot as usize] = USED;
                *out = slot;
            } else {
                misses.push(Miss { index: index as i32, id, slot: -1 });
            }
        }
        self.choose(misses.len());
        let mut taken = 0;
        misses.retain_mut(|miss| {
            // Mapped by now: it is the repetition of a miss. Beyond S ids nobody is left to evict.
            let (held, slot) = self.links[self.place(miss.id)];
            if held == miss.id {
                slots[miss.index as usize] = slot;
                return false;
            }
            let Some(&slot) = self.victims.get(taken) else { return true };
            taken += 1;
            let old = std::mem::replace(&mut self.id_at[slot as usize], miss.id);
            if old != EMPTY {
                self.remove(old);
            }
            let at = self.place(miss.id);
            self.links[at] = (miss.id, slot as i32);
            self.life[slot as usize] = USED;
            (miss.slot, slots[miss.index as usize]) = (slot as i32, slot as i32);
            true
        });
    }
}
