//! Belady's optimal policy under the operator's rules: the most hits that any policy can reach.
//!
//! The victims are the rows whose next use is farthest in the future. As in the operator, every miss
//! takes a slot, and rows that the running step uses are not evicted, because their slots are read
//! after the whole step.

use std::collections::{BTreeSet, HashMap};

use super::{Policy, check_slots};
use crate::trace::Trace;
use avsg::Result;

/// The next use of a row that no later token selects.
const NEVER: u32 = u32::MAX;

/// The buffer and the next uses of one trace. The policy is only valid for that trace, replayed from
/// its beginning.
#[derive(Debug)]
pub struct Belady {
    slots: usize,
    /// For each position of the trace, the number of the next token that selects the same id.
    next_use: Vec<u32>,
    /// The next use of each id in the buffer.
    resident: HashMap<i32, u32>,
    /// (next use, id) of each id that may be evicted.
    victims: BTreeSet<(u32, i32)>,
    /// The ids in the buffer that the running step uses.
    used: Vec<i32>,
    /// Position in the trace of the next token's first id.
    position: usize,
}

impl Belady {
    /// Creates an empty buffer of `slots` rows for `trace`.
    pub fn new(trace: &Trace, slots: usize) -> Result<Self> {
        Ok(Self {
            slots: check_slots(slots, 1)?,
            next_use: next_uses(trace),
            resident: HashMap::new(),
            victims: BTreeSet::new(),
            used: Vec::new(),
            position: 0,
        })
    }
}

impl Policy for Belady {
    fn begin_step(&mut self) {
        self.victims.extend(self.used.drain(..).map(|id| (self.resident[&id], id)));
    }

    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        // (id, next use) of each miss.
        let mut missing: Vec<(i32, u32)> = Vec::new();
        for (i, &id) in ids.iter().enumerate().filter(|&(_, &id)| id >= 0) {
            let next = self.next_use.get(self.position + i).copied().unwrap_or(NEVER);
            match self.resident.get_mut(&id) {
                Some(held) => {
                    self.victims.remove(&(*held, id));
                    *held = next;
                    self.used.push(id);
                }
                None => missing.push((id, next)),
            }
        }
        self.position += ids.len();
        for (id, next) in missing {
            if self.resident.contains_key(&id) {
                continue;
            }
            misses.push(id);
            if self.resident.len() == self.slots {
                // If N_q * K > S, every slot may be in use. The row is then not kept.
                let Some((_, old)) = self.victims.pop_last() else { continue };
                self.resident.remove(&old);
            }
            self.resident.insert(id, next);
            self.used.push(id);
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
