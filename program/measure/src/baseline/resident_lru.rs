//! The LRU of vLLM-Ascend's host function `lru_resident_compact`, with its outputs and its threads.
//!
//! Every row of the batch, which is one token of one request, has a buffer and an order of use of its
//! own. A call marks the row's ids in an array over all ids, visits all slots in order of use, and
//! gives misses the oldest slots that are not selected. The new order of use is: slots that were not
//! selected, misses, hits. Threads take rows in turn, and each has its own array of marks. A row always
//! has the same request, and no id becomes invalid.

use std::sync::{Mutex, PoisonError};

use super::check_slots;
use crate::checks::require;
use avsg::Result;
use avsg::cpu::worker_pool::{Stage, WorkerConfig, WorkerPool};

/// The mark of an empty slot and of an id without a slot.
const EMPTY: i32 = -1;
/// The epoch at which the marks are cleared, so that epochs stay positive.
const LAST_EPOCH: i32 = 1 << 30;

/// The buffer of one row and the outputs of its last step.
#[derive(Debug, Clone)]
pub struct LruRow {
    /// The id in each slot, -1 for an empty one.
    pub id_at: Vec<i32>,
    /// Slots, least recently used first.
    pub order: Vec<i32>,
    /// The slot of each selected id, -1 for padding; the K of the last step.
    pub slots: Vec<i32>,
    /// The ids that missed, then -1.
    pub miss_ids: Vec<i32>,
    /// The slots for the ids that missed, then -1.
    pub miss_slots: Vec<i32>,
    /// The number of ids that missed.
    pub misses: usize,
}

/// The marks and the lists of one thread.
#[derive(Debug)]
struct Marks {
    /// The epoch in which an id was selected last.
    mark: Vec<i32>,
    /// The position of an id in the selection of that epoch.
    position: Vec<i32>,
    epoch: i32,
    hits: Vec<i32>,
    evictable: Vec<i32>,
}

/// The rows of one thread: row r of the batch is row r / threads of thread r mod threads.
type Share = (Vec<LruRow>, Marks);

/// The buffers of all rows, and the threads.
pub struct ResidentLru {
    shares: Vec<Mutex<Share>>,
    threads: WorkerPool,
    k: usize,
}

impl LruRow {
    fn step(&mut self, work: &mut Marks, ids: &[i32]) {
        for out in [&mut self.slots, &mut self.miss_ids, &mut self.miss_slots] {
            out.fill(EMPTY);
        }
        work.select(ids);
        let (mut hits, mut evictable) = (0, 0);
        for &slot in &self.order {
            // A negative id is beyond the marks.
            let at = self.id_at[slot as usize] as u32 as usize;
            if work.mark.get(at).is_some_and(|&mark| mark == work.epoch) {
                self.slots[work.position[at] as usize] = slot;
                work.hits[hits] = slot;
                hits += 1;
            } else {
                work.evictable[evictable] = slot;
                evictable += 1;
            }
        }
        self.misses = 0;
        for (out, &id) in self.slots.iter_mut().zip(ids) {
            if (id as u32 as usize) < work.mark.len() && *out < 0 && self.misses < evictable {
                let slot = work.evictable[self.misses];
                *out = slot;
                self.id_at[slot as usize] = id;
                (self.miss_ids[self.misses], self.miss_slots[self.misses]) = (id, slot);
                self.misses += 1;
            }
        }
        let (placed, kept) = work.evictable[..evictable].split_at(self.misses);
        self.order.clear();
        [kept, placed, &work.hits[..hits]]
            .iter()
            .for_each(|part| self.order.extend_from_slice(part));
    }
}

impl Marks {
    /// Marks the ids of a row with a new epoch, at their first positions.
    fn select(&mut self, ids: &[i32]) {
        self.epoch += 1;
        if self.epoch >= LAST_EPOCH {
            self.mark.fill(0);
            self.epoch = 1;
        }
        for (position, &id) in (0i32..).zip(ids) {
            let at = id as u32 as usize;
            if let Some(mark) = self.mark.get_mut(at).filter(|mark| **mark != self.epoch) {
                *mark = self.epoch;
                self.position[at] = position;
            }
        }
    }
}

impl ResidentLru {
    /// Creates empty buffers of `slots` slots for `rows` rows of `k` ids below `ids`, and starts
    /// `threads` threads, the caller's included.
    pub fn new(rows: usize, k: usize, slots: usize, ids: usize, threads: usize) -> Result<Self> {
        check_slots(slots, k)?;
        let value = format!("{rows} rows of {k} ids");
        let limit = "each must be at least 1";
        require(rows > 0 && k > 0, "selection", value, limit, "pass rows with ids")?;
        let threads = WorkerPool::new(&WorkerConfig::new(threads))?;
        let workers = threads.threads();
        let share = |worker: usize| {
            let work = Marks {
                mark: vec![0; ids],
                position: vec![EMPTY; ids],
                epoch: 0,
                hits: vec![0; slots],
                evictable: vec![0; slots],
            };
            let row = LruRow {
                id_at: vec![EMPTY; slots],
                order: (0..slots as i32).collect(),
                slots: vec![EMPTY; k],
                miss_ids: vec![EMPTY; k],
                miss_slots: vec![EMPTY; k],
                misses: 0,
            };
            let count = (rows + workers - 1 - worker) / workers;
            Mutex::new((vec![row; count], work))
        };
        Ok(Self { shares: (0..workers).map(share).collect(), threads, k })
    }

    /// Runs one step over the rows from `first` on. `ids` are the ids that they select, `[rows, K]`.
    pub fn step(&mut self, first: usize, ids: &[i32]) -> Result<()> {
        let (rows, k, shares) = (ids.len() / self.k, self.k, &self.shares);
        let workers = shares.len();
        let run = |core: usize, _: usize| {
            let Some(share) = shares.get(core) else { return };
            // The lock is never contended, because one worker at a time runs a share.
            let mut share = share.lock().unwrap_or_else(PoisonError::into_inner);
            let (own, work) = &mut *share;
            let from = (core + workers - first % workers) % workers;
            let own = own.iter_mut().skip((first + from) / workers);
            for (row, state) in (from..rows).step_by(workers).zip(own) {
                state.step(work, &ids[row * k..][..k]);
            }
        };
        // A single row runs on the caller's thread, as in the original.
        let work = if rows > 1 { u64::MAX } else { 0 };
        self.threads
            .launch(work, [Some(Stage { pieces: workers, run: &run }), None], None)
            .map(drop)
    }

    /// Returns the buffer and the outputs of one row.
    pub fn row(&mut self, row: usize) -> &LruRow {
        let workers = self.shares.len();
        let share = self.shares[row % workers].get_mut().unwrap_or_else(PoisonError::into_inner);
        &share.0[row / workers]
    }
}
