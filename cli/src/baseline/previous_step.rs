//! The previous step's selection as the buffer, matched by sorting and two pointers.
//!
//! GatherSelection's algorithm, scalar: the buffer has S = K slots. Keys id << 32 | index are sorted,
//! then merged with the sorted keys of the step before, whose low half is the slot. Equal ids are
//! hits and keep their slot, ids only in the old list free theirs, and the misses take those.
//!
//! With several tokens a step each token is compared with the one before it. A repeated id matches
//! once; its repetitions are misses with slots of their own.

use super::{Matcher, Miss, check_slots};
use avsg::Result;

/// Ends both lists: above every key, as ids are not negative.
const END: u64 = u64::MAX;

/// The buffer and the scratch of a step.
#[derive(Debug)]
pub struct PreviousStep {
    /// id << 32 | slot, sorted, then `END`.
    old: Vec<u64>,
    /// id << 32 | index, sorted, then `END`; becomes `old` when slots have replaced the indices.
    new: Vec<u64>,
    /// The slot of each key of `new`.
    slot_at: Vec<u32>,
    /// Where in `new` the misses are.
    missing: Vec<u32>,
    /// Slots that hold nothing of the step: `free[..unused]`, what the merge frees goes on top.
    free: Vec<u32>,
    unused: usize,
}

impl PreviousStep {
    /// An empty buffer for selections of up to `k` ids.
    pub fn new(k: usize) -> Result<Self> {
        let k = check_slots(k, 1)?;
        let mut old = Vec::with_capacity(k + 1);
        old.push(END);
        Ok(Self {
            old,
            new: Vec::with_capacity(k + 1),
            slot_at: vec![0; k + 1],
            missing: vec![0; k + 1],
            // One more of each: the merge stores before it knows whether to keep.
            free: (0..=k as u32).collect(),
            unused: k,
        })
    }

    /// Sorts the keys of the step; a selection longer than the buffer is cut.
    fn sort(&mut self, ids: &[i32]) {
        let most = self.missing.len() - 1;
        self.new.clear();
        let keys = ids.iter().zip(0u64..).filter(|&(&id, _)| id >= 0);
        self.new.extend(keys.take(most).map(|(&id, index)| (id as u64) << 32 | index));
        self.new.sort_unstable();
        self.new.push(END);
    }

    /// Merges without a data-dependent branch: everything is stored, and the counters say what of it
    /// counts. Returns the number of misses.
    fn merge(&mut self) -> usize {
        let (new, old) = (self.new.as_slice(), self.old.as_slice());
        let (missing, free) = (self.missing.as_mut_slice(), self.free.as_mut_slice());
        let slot_at = self.slot_at.as_mut_slice();
        let (mut i, mut j, mut missed, mut unused) = (0, 0, 0, self.unused);
        let last = (new.len() - 1, old.len() - 1);
        while i < last.0 || j < last.1 {
            let (key, held) = (new[i], old[j]);
            let (fresh, gone) = ((key >> 32) < (held >> 32), (held >> 32) < (key >> 32));
            missing[missed] = i as u32;
            free[unused] = held as u32;
            slot_at[i] = held as u32;
            missed += usize::from(fresh);
            unused += usize::from(gone);
            i += usize::from(!gone);
            j += usize::from(!fresh);
        }
        self.unused = unused;
        missed
    }
}

impl Matcher for PreviousStep {
    fn step(&mut self, ids: &[i32], slots: &mut [i32], misses: &mut Vec<Miss>) {
        let n = ids.len().min(slots.len());
        self.sort(&ids[..n]);
        if self.new.len() <= n {
            slots.fill(-1); // There is padding, or the selection was cut.
        }
        let missed = self.merge();
        misses.clear();
        for &at in &self.missing[..missed] {
            self.unused -= 1;
            let (key, slot) = (self.new[at as usize], self.free[self.unused]);
            self.slot_at[at as usize] = slot;
            misses.push(Miss {
                index: key as u32 as i32,
                id: (key >> 32) as i32,
                slot: slot as i32,
            });
        }
        let selected = self.new.len() - 1;
        for (key, &slot) in self.new[..selected].iter_mut().zip(&self.slot_at) {
            slots[*key as u32 as usize] = slot as i32;
            *key = *key >> 32 << 32 | u64::from(slot);
        }
        std::mem::swap(&mut self.old, &mut self.new);
    }
}
