//! CLOCK and SIEVE: policies that keep one bit per row and move a hand over the slots.
//!
//! A hit sets the bit of its row. A miss moves the hand to the next row without the bit and evicts that
//! row; on its way the hand clears the bits that it finds. As in the operator, every miss takes a slot,
//! and rows that the running step uses are not evicted: the hand passes them and leaves their bits.

use avsg_cli::baseline::Policy;
use avsg_cli::baseline::order::Order;
use avsg_cli::baseline::residents::Residents;

/// The rules in which the two policies differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Slots stay where they are, and a new row has its bit set.
    Clock,
    /// Slots are in the order of their rows' arrival, and a new row has its bit clear (Zhang et al.,
    /// "SIEVE is Simpler than LRU", NSDI 2024).
    Sieve,
}

/// The buffer of CLOCK or of SIEVE.
#[derive(Debug)]
pub struct SecondChance {
    rule: Rule,
    residents: Residents,
    order: Order,
    /// The slot that the hand examines next.
    hand: usize,
    /// Whether each slot's row was hit since the hand passed it.
    hit: Vec<bool>,
    /// For each slot, the last step that used it, counted from 1; 0 for none.
    used_in: Vec<u32>,
    /// The running step, counted from 1.
    step: u32,
}

impl SecondChance {
    /// Creates an empty buffer of `slots` rows with the policy CLOCK.
    pub fn clock(slots: usize) -> Self {
        Self::new(slots, Rule::Clock)
    }

    /// Creates an empty buffer of `slots` rows with the policy SIEVE.
    pub fn sieve(slots: usize) -> Self {
        Self::new(slots, Rule::Sieve)
    }

    fn new(slots: usize, rule: Rule) -> Self {
        Self {
            rule,
            residents: Residents::new(slots),
            order: Order::new(slots),
            hand: 0,
            hit: vec![false; slots],
            used_in: vec![0; slots],
            step: 0,
        }
    }

    /// Moves the hand to the next victim and behind it, and returns the victim; `None` if the running
    /// step uses every slot.
    fn next_victim(&mut self) -> Option<usize> {
        // The first round clears all bits of rows that are not in use.
        for _ in 0..2 * self.hit.len() {
            let slot = self.hand;
            self.hand = self.order.newer(slot);
            if self.used_in[slot] == self.step && !self.residents.is_empty(slot) {
                continue;
            }
            if !std::mem::take(&mut self.hit[slot]) {
                return Some(slot);
            }
        }
        None
    }

    fn install(&mut self, id: i32) {
        // If N_q * K > S, every slot may be in use. The row is then not kept.
        let Some(slot) = self.next_victim() else { return };
        self.residents.bind(id, slot);
        self.used_in[slot] = self.step;
        self.hit[slot] = self.rule == Rule::Clock;
        if self.rule == Rule::Sieve {
            self.order.make_newest(slot);
        }
    }
}

impl Policy for SecondChance {
    fn begin_step(&mut self) {
        self.step += 1;
    }

    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        let first = misses.len();
        for &id in ids.iter().filter(|&&id| id >= 0) {
            match self.residents.find(id) {
                Some(slot) => {
                    self.hit[slot] = true;
                    self.used_in[slot] = self.step;
                }
                None => misses.push(id),
            }
        }
        let mut kept = first;
        for at in first..misses.len() {
            let id = misses[at];
            // An id that has become resident is the repetition of a miss.
            if self.residents.find(id).is_none() {
                self.install(id);
                misses[kept] = id;
                kept += 1;
            }
        }
        misses.truncate(kept);
    }
}
