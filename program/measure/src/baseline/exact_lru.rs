//! Exact LRU, the reference of hit rates.
//!
//! The tokens of a step run in sequence on one buffer. A token first refreshes its hits and then
//! gives its misses the least recently used slots, so it never evicts a row that it selects. With
//! N_q * K <= S no earlier token of the step loses a row either.
//!
//! The ids of one token are equally old, and the order in which they become the oldest matters: hits
//! first and misses first differ by 1 percentage point at S = 2K. Here it is the order of the
//! token's ids, which favours neither if an indexer's ids are unordered.

use super::order::Order;
use super::residents::Residents;
use super::{Policy, check_slots};
use avsg::Result;

/// The buffer, with its slots in order of use.
#[derive(Debug)]
pub struct ExactLru {
    residents: Residents,
    order: Order,
}

impl ExactLru {
    /// Creates an empty buffer of `slots` rows.
    pub fn new(slots: usize) -> Result<Self> {
        let slots = check_slots(slots, 1)?;
        Ok(Self { residents: Residents::new(slots), order: Order::new(slots) })
    }
}

impl Policy for ExactLru {
    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        let first = misses.len();
        for &id in ids.iter().filter(|&&id| id >= 0) {
            match self.residents.find(id) {
                Some(slot) => self.order.make_newest(slot),
                None => misses.push(id),
            }
        }
        let mut kept = first;
        for at in first..misses.len() {
            let id = misses[at];
            // An id that has become resident is the repetition of a miss.
            if self.residents.find(id).is_none() {
                let oldest = self.order.oldest();
                self.residents.bind(id, oldest);
                self.order.make_newest(oldest);
                misses[kept] = id;
                kept += 1;
            }
        }
        misses.truncate(kept);
        if kept > first {
            for &id in ids {
                if let Some(slot) = self.residents.find(id) {
                    self.order.make_newest(slot);
                }
            }
        }
    }
}
