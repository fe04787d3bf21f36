//! Exact LRU, the reference of hit rates.
//!
//! The tokens of a step run in sequence on one buffer. A token first refreshes its hits and then
//! gives its misses the least recently used slots, so it never evicts a row that it selects. With
//! N_q * K <= S no earlier token of the step loses a row either.
//!
//! The ids of one token are equally old, and the order in which they become the oldest matters: hits
//! first and misses first differ by 1 percentage point at S = 2K. Here it is the order of the
//! token's ids, which favours neither if an indexer's ids are unordered.

use super::residents::Residents;
use super::{Policy, check_slots};
use avsg::Result;

/// The buffer. Its slots form a doubly linked ring in order of use; node S is the head between the
/// newest and the oldest slot.
#[derive(Debug)]
pub struct ExactLru {
    residents: Residents,
    /// The next older node of each node.
    older: Vec<u32>,
    /// The next newer node of each node.
    newer: Vec<u32>,
}

impl ExactLru {
    /// Creates an empty buffer of `slots` rows.
    pub fn new(slots: usize) -> Result<Self> {
        let slots = check_slots(slots, 1)?;
        let n = slots as u32 + 1;
        // Empty slots are the oldest, in ascending order.
        let older = (0..n).map(|i| (i + n - 1) % n).collect();
        let newer = (0..n).map(|i| (i + 1) % n).collect();
        Ok(Self { residents: Residents::new(slots), older, newer })
    }

    fn make_newest(&mut self, slot: usize) {
        let head = self.residents.slots();
        let (older, newer) = (self.older[slot], self.newer[slot]);
        self.newer[older as usize] = newer;
        self.older[newer as usize] = older;
        let newest = self.older[head];
        (self.older[slot], self.newer[slot]) = (newest, head as u32);
        self.newer[newest as usize] = slot as u32;
        self.older[head] = slot as u32;
    }
}

impl Policy for ExactLru {
    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        let first = misses.len();
        for &id in ids.iter().filter(|&&id| id >= 0) {
            match self.residents.find(id) {
                Some(slot) => self.make_newest(slot),
                None => misses.push(id),
            }
        }
        let mut kept = first;
        for at in first..misses.len() {
            let id = misses[at];
            // An id that has become resident is the repetition of a miss.
            if self.residents.find(id).is_none() {
                let oldest = self.newer[self.residents.slots()] as usize;
                self.residents.bind(id, oldest);
                self.make_newest(oldest);
                misses[kept] = id;
                kept += 1;
            }
        }
        misses.truncate(kept);
        if kept > first {
            for &id in ids {
                if let Some(slot) = self.residents.find(id) {
                    self.make_newest(slot);
                }
            }
        }
    }
}
