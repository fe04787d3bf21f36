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
use super::{Matched, Policy, check_slots};
use avsg::Result;

/// The buffer, with its slots in order of use.
#[derive(Debug)]
pub struct ExactLru {
    residents: Residents,
    order: Order,
    /// The misses of the running token.
    missing: Vec<i32>,
}

impl ExactLru {
    /// Creates an empty buffer of `slots` rows.
    pub fn new(slots: usize) -> Result<Self> {
        let slots = check_slots(slots, 1)?;
        let (residents, order) = (Residents::new(slots), Order::new(slots));
        Ok(Self { residents, order, missing: Vec::new() })
    }

    /// Selects the ids of one token, and calls `missed` with each that was not resident, with its slot, and with the id
    /// that it evicts, if any. Hits count as used first.
    pub fn select(&mut self, ids: &[i32], mut missed: impl FnMut(i32, usize, Option<i32>)) {
        let mut missing = std::mem::take(&mut self.missing);
        missing.clear();
        for &id in ids.iter().filter(|&&id| id >= 0) {
            match self.residents.find(id) {
                Some(slot) => self.order.make_newest(slot),
                None => missing.push(id),
            }
        }
        for &id in &missing {
            // An id that has become resident is the repetition of a miss.
            if self.residents.find(id).is_none() {
                let oldest = self.order.oldest();
                missed(id, oldest, self.residents.bind(id, oldest));
                self.order.make_newest(oldest);
            }
        }
        if !missing.is_empty() {
            for &id in ids {
                if let Some(slot) = self.residents.find(id) {
                    self.order.make_newest(slot);
                }
            }
        }
        self.missing = missing;
    }

    /// Matches the ids of one token. An id that more than S others of its token follow has no slot any more.
    pub fn step(&mut self, ids: &[i32], out: &mut Matched) {
        out.misses.clear();
        self.select(ids, |id, slot, _| out.misses.push((id, slot as i32)));
        out.slots.clear();
        let slot = |&id: &i32| self.residents.find(id).map_or(-1, |slot| slot as i32);
        out.slots.extend(ids.iter().map(slot));
    }
}

impl Policy for ExactLru {
    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        self.select(ids, |id, _, _| misses.push(id));
    }
}
