//! Belady's optimal policy under the operator's rules: the most hits that any policy can reach.
//!
//! The victims are the rows whose next use is farthest in the future. As in the operator, every miss
//! takes a slot, and rows that the running step uses are not evicted, because their slots are read
//! after the whole step.

use super::residents::Residents;
use super::{Policy, check_slots};
use crate::trace::Trace;
use avsg::Result;

/// The next use of a row that no later token selects.
const NEVER: u32 = u32::MAX;

/// The buffer and the next uses of one trace. The policy is only valid for that trace, replayed from
/// its beginning.
#[derive(Debug)]
pub struct Belady {
    residents: Residents,
    /// For each position of the trace, the number of the next token that selects the same id.
    next_use: Vec<u32>,
    /// For each slot, the number of the next token that selects its id.
    next_use_of_slot: Vec<u32>,
    /// For each slot, the last step that used it, counted from 1; 0 for none.
    used_in: Vec<u32>,
    /// The running step, counted from 1.
    step: u32,
    /// Position in the trace of the next token's first id.
    position: usize,
}

impl Belady {
    /// Creates an empty buffer of `slots` rows for `trace`.
    pub fn new(trace: &Trace, slots: usize) -> Result<Self> {
        let slots = check_slots(slots, 1)?;
        Ok(Self {
            residents: Residents::new(slots),
            next_use: next_uses(trace),
            next_use_of_slot: vec![NEVER; slots],
            used_in: vec![0; slots],
            step: 0,
            position: 0,
        })
    }

    /// Returns the `need` slots whose next use is farthest, or all slots that may be evicted if there are fewer.
    fn victims(&self, need: usize) -> Vec<(u32, usize)> {
        let free = |&slot: &usize| self.used_in[slot] != self.step || self.residents.is_empty(slot);
        let slots = (0..self.residents.slots()).filter(free);
        let keyed = slots.map(|slot| (NEVER - self.next_use_of_slot[slot], slot));
        let mut victims: Vec<(u32, usize)> = keyed.collect();
        if need < victims.len() {
            victims.select_nth_unstable(need);
            victims.truncate(need);
        }
        victims
    }
}

impl Policy for Belady {
    fn begin_step(&mut self) {
        self.step += 1;
    }

    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        // (id, next use) of each miss.
        let mut missing: Vec<(i32, u32)> = Vec::new();
        for (i, &id) in ids.iter().enumerate().filter(|&(_, &id)| id >= 0) {
            let next = self.next_use.get(self.position + i).copied().unwrap_or(NEVER);
            match self.residents.find(id) {
                Some(slot) => {
                    self.next_use_of_slot[slot] = next;
                    self.used_in[slot] = self.step;
                }
                None => missing.push((id, next)),
            }
        }
        self.position += ids.len();
        let mut victims = self.victims(missing.len()).into_iter();
        for (id, next) in missing {
            if self.residents.find(id).is_some() {
                continue;
            }
            misses.push(id);
            // If N_q * K > S, every slot may be in use. The row is then not kept.
            let Some((_, slot)) = victims.next() else { continue };
            self.residents.bind(id, slot);
            self.next_use_of_slot[slot] = next;
            self.used_in[slot] = self.step;
        }
    }
}

/// Returns, for each position of the trace, the number of the next token that selects the same id.
/// Repetitions of an id within a token have the same next use.
fn next_uses(trace: &Trace) -> Vec<u32> {
    let ids = trace.largest_id().map_or(0, |id| id as usize + 1);
    let mut next_token_of_id = vec![NEVER; ids];
    // A row that is copied anew at its next selection is not worth a slot until then.
    let mut stale = trace.stale();
    let mut next = vec![NEVER; trace.ids.len()];
    for row in (0..trace.steps * trace.tokens).rev() {
        let span = row * trace.k..(row + 1) * trace.k;
        for at in span.clone().filter(|&at| trace.ids[at] >= 0) {
            next[at] = next_token_of_id[trace.ids[at] as usize];
        }
        for at in span.rev().filter(|&at| trace.ids[at] >= 0) {
            let is_stale = stale.pop_if(|place| *place == at).is_some();
            next_token_of_id[trace.ids[at] as usize] = if is_stale { NEVER } else { row as u32 };
        }
    }
    next
}
