//! Sets of 16 with a FIFO head each: the policy of a published shared-indexer scheme.
//!
//! An id belongs to the set id mod sets; a new row replaces the one at the set's head, which then
//! moves on, whether or not anybody still uses that row. Only the policy is modelled: rows of a step
//! are installed after it, so its tokens are matched with the buffer as the step found it, and an id
//! that two of them miss is fetched twice and installed once.

use super::residents::Residents;
use super::{Policy, check_slots};
use avsg::{Error, Result};

/// Rows of a set.
pub const WAYS: usize = 16;

/// The buffer.
#[derive(Debug)]
pub struct SetFifo {
    residents: Residents,
    heads: Vec<u8>,
    /// Missed in the running step.
    pending: Vec<i32>,
}

impl SetFifo {
    /// An empty buffer of `slots` rows, 16 times a power of two.
    pub fn new(slots: usize) -> Result<Self> {
        let slots = check_slots(slots, WAYS)?;
        if !slots.is_multiple_of(WAYS) || !(slots / WAYS).is_power_of_two() {
            let limit = "it must be 16 times a power of two";
            return Err(Error::invalid("slots", slots, limit, "choose 4096, 8192 or the like"));
        }
        let heads = vec![0; slots / WAYS];
        Ok(Self { residents: Residents::new(slots), heads, pending: Vec::new() })
    }
}

impl Policy for SetFifo {
    fn begin_step(&mut self) {
        for id in self.pending.drain(..) {
            if self.residents.find(id).is_some() {
                continue;
            }
            let set = id as usize & (self.heads.len() - 1);
            let head = &mut self.heads[set];
            self.residents.bind(id, set * WAYS + usize::from(*head));
            *head = (*head + 1) % WAYS as u8;
        }
    }

    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        let missing = ids.iter().filter(|&&id| id >= 0 && self.residents.find(id).is_none());
        let first = misses.len();
        misses.extend(missing);
        self.pending.extend_from_slice(&misses[first..]);
    }
}
