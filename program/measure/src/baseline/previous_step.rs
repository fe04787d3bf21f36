//! A buffer that holds the previous step's selection, matched by sorting and two pointers.
//!
//! This is GatherSelection's algorithm as scalar code, with S = K slots. The keys id << 32 | index are
//! sorted and merged with the sorted keys of the previous step, whose low half is the slot. Ids in
//! both lists are hits and keep their slots. Ids only in the old list free their slots, which the
//! misses take.
//!
//! If a step has several tokens, each token is compared with the token before it. A repeated id
//! matches once; its repetitions are misses with slots of their own.

use super::{Matched, Policy, check_slots};
use avsg::Result;

/// The last key of both lists. It is above all others, because ids are not negative.
const END: u64 = u64::MAX;

/// The buffer and the scratch arrays of a step.
#[derive(Debug)]
pub struct PreviousStep {
    /// id << 32 | slot, sorted, then `END`.
    old: Vec<u64>,
    /// id << 32 | index, sorted, then `END`. At the end of a step, slots replace the indices and the
    /// list becomes `old`.
    new: Vec<u64>,
    /// The slot of each key of `new`.
    slot_at: Vec<u32>,
    /// The positions of the misses in `new`.
    missing: Vec<u32>,
    /// A stack of slots without a selected row; its first `free_slots` elements are valid.
    free: Vec<u32>,
    free_slots: usize,
}

impl PreviousStep {
    /// Creates an empty buffer for selections of up to `k` ids.
    pub fn new(k: usize) -> Result<Self> {
        let k = check_slots(k, 1)?;
        let mut old = Vec::with_capacity(k + 1);
        old.push(END);
        Ok(Self {
            old,
            new: Vec::with_capacity(k + 1),
            slot_at: vec![0; k + 1],
            missing: vec![0; k + 1],
            // These arrays have k + 1 elements: the merge also stores elements that do not count.
            free: (0..=k as u32).collect(),
            free_slots: k,
        })
    }

    /// Matches the ids of one token: sorts their keys, and merges the two lists. To avoid branches that depend on data,
    /// every iteration of the merge stores to all arrays and advances only the counters of the elements that count.
    pub fn step(&mut self, ids: &[i32], out: &mut Matched) {
        let Self { old, new, slot_at, missing, free, free_slots } = self;
        let max = missing.len() - 1;
        new.clear();
        let keys = ids.iter().zip(0u64..).filter(|&(&id, _)| id >= 0);
        // A selection that is longer than the buffer is cut.
        new.extend(keys.take(max).map(|(&id, index)| (id as u64) << 32 | index));
        new.sort_unstable();
        new.push(END);
        let (missing, free, slot_at) = (&mut missing[..], &mut free[..], &mut slot_at[..]);
        let (mut i, mut j, mut misses, mut freed) = (0, 0, 0, *free_slots);
        let (selected, ends) = (new.len() - 1, old.len() - 1);
        while i < selected || j < ends {
            let (key, resident) = (new[i], old[j]);
            let (only_new, only_old) =
                ((key >> 32) < (resident >> 32), (resident >> 32) < (key >> 32));
            missing[misses] = i as u32;
            free[freed] = resident as u32;
            slot_at[i] = resident as u32;
            misses += usize::from(only_new);
            freed += usize::from(only_old);
            i += usize::from(!only_old);
            j += usize::from(!only_new);
        }
        *free_slots = freed - misses;
        out.misses.clear();
        for (&at, &slot) in missing[..misses].iter().zip(free[..freed].iter().rev()) {
            slot_at[at as usize] = slot;
            out.misses.push(((new[at as usize] >> 32) as i32, slot as i32));
        }
        out.slots.clear();
        out.slots.resize(ids.len(), -1);
        for (key, &slot) in new[..selected].iter_mut().zip(&*slot_at) {
            out.slots[*key as u32 as usize] = slot as i32;
            *key = *key >> 32 << 32 | u64::from(slot);
        }
        std::mem::swap(old, new);
    }
}

impl Policy for PreviousStep {
    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        let mut out = Matched::default();
        self.step(ids, &mut out);
        misses.extend(out.misses.iter().map(|&(id, _)| id));
    }
}
