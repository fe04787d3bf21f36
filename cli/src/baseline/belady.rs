//! Belady's optimum under the operator's rules: what a policy that knows the future would reach.
//!
//! Victims are the rows whose next use is farthest. As in the operator, every miss needs a slot and
//! nothing that the running step uses may go: its slots are read after the whole step.

use super::residents::Residents;
use super::{Policy, check_slots};
use crate::trace::Trace;
use avsg::Result;

/// Never used again.
const NEVER: u32 = u32::MAX;

/// The buffer and the known future of one trace, which it must be replayed on from its beginning.
#[derive(Debug)]
pub struct Belady {
    residents: Residents,
    /// For every id of the trace the number of the next token that selects it.
    next_use: Vec<u32>,
    /// The same for the resident of each slot.
    next_at: Vec<u32>,
    /// The step that used the slot last; 0 for none.
    used_in: Vec<u32>,
    step: u32,
    at: usize,
    waiting: Vec<(i32, u32)>,
    candidates: Vec<(u32, u32)>,
}

impl Belady {
    /// An empty buffer of `slots` rows that knows `trace`.
    pub fn new(trace: &Trace, slots: usize) -> Result<Self> {
        let slots = check_slots(slots, 1)?;
        Ok(Self {
            residents: Residents::new(slots),
            next_use: next_uses(trace),
            next_at: vec![NEVER; slots],
            used_in: vec![0; slots],
            step: 0,
            at: 0,
            waiting: Vec::new(),
            candidates: Vec::new(),
        })
    }

    /// Lists the `need` best victims, the best first.
    fn choose(&mut self, need: usize) {
        let step = self.step;
        let free = |&slot: &usize| self.used_in[slot] != step || self.residents.is_empty(slot);
        let slots = (0..self.residents.slots()).filter(free);
        self.candidates.clear();
        self.candidates.extend(slots.map(|slot| (NEVER - self.next_at[slot], slot as u32)));
        if need < self.candidates.len() {
            self.candidates.select_nth_unstable(need);
            self.candidates.truncate(need);
        }
    }
}

impl Policy for Belady {
    fn begin_step(&mut self) {
        self.step += 1;
    }

    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        self.waiting.clear();
        for (i, &id) in ids.iter().enumerate().filter(|&(_, &id)| id >= 0) {
            let next = self.next_use.get(self.at + i).copied().unwrap_or(NEVER);
            match self.residents.find(id) {
                Some(slot) => {
                    self.next_at[slot] = next;
                    self.used_in[slot] = self.step;
                }
                None => self.waiting.push((id, next)),
            }
        }
        self.at += ids.len();
        self.choose(self.waiting.len());
        let mut victims = self.candidates.iter().map(|&(_, slot)| slot as usize);
        for &(id, next) in &self.waiting {
            if self.residents.find(id).is_some() {
                continue;
            }
            misses.push(id);
            // Without N_q * K <= S there may be nobody left to evict: the row is not kept.
            let Some(slot) = victims.next() else { continue };
            self.residents.bind(id, slot);
            self.next_at[slot] = next;
            self.used_in[slot] = self.step;
        }
    }
}

/// Walks the trace backwards. Repetitions within a token share the token's next use.
fn next_uses(trace: &Trace) -> Vec<u32> {
    let largest = trace.ids.iter().copied().max().unwrap_or(-1);
    let mut coming = vec![NEVER; (largest + 1).max(0) as usize];
    let mut next = vec![NEVER; trace.ids.len()];
    for row in (0..trace.steps * trace.tokens).rev() {
        let span = row * trace.k..(row + 1) * trace.k;
        for at in span.clone().filter(|&at| trace.ids[at] >= 0) {
            next[at] = coming[trace.ids[at] as usize];
        }
        for at in span.filter(|&at| trace.ids[at] >= 0) {
            coming[trace.ids[at] as usize] = row as u32;
        }
    }
    next
}
