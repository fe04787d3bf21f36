//! Counters and times of an engine's calls.

use std::time::Duration;

use crate::batch::{Batch, named};
use crate::plan::Plan;
use crate::{Result, reserve};

/// What an engine has done since it was made. Every number only grows, so that the difference of two
/// readings describes the calls between them.
///
/// The host does not see what a caller's stream plans and copies: of such calls only
/// [`Self::queued`] is counted. A load counts as its plans and transfers. Times are those of the
/// calling thread, from the checked arguments to the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Batches planned, with or without a transfer in the same call.
    pub plans: u64,
    /// Transfers of a plan to a layer, with or without a plan in the same call.
    pub transfers: u64,
    /// Appends to a layer.
    pub appends: u64,
    /// Calls that were put into a caller's stream; one for several layers counts for each of them.
    pub queued: u64,
    /// Selected ids that had a slot.
    pub hits: u64,
    /// Selected ids that got a slot.
    pub misses: u64,
    /// Those of the misses whose slot an earlier id had been given since the state was last empty:
    /// the id was evicted, or had been invalidated.
    pub evictions: u64,
    /// Bytes that transfers copied to slots, from the pool or from fresh rows.
    pub transferred_bytes: u64,
    /// Bytes of the fresh rows of appends.
    pub appended_bytes: u64,
    /// Time in Stage One.
    pub plan_time: Duration,
    /// Time in Stage Two.
    pub transfer_time: Duration,
    /// Time of steps on an Ascend device, whose stages the host cannot tell apart.
    pub step_time: Duration,
    /// Time in appends.
    pub append_time: Duration,
}

/// The counters of an engine, and what counting evictions takes.
pub(super) struct Counters {
    pub total: Stats,
    /// `[tables]`.
    tables: Box<[TableUse]>,
    /// `[tables, words]`, one bit for each slot that no id was given since the table was empty.
    unused: Box<[u64]>,
    slots: usize,
    states: usize,
}

/// What is known of the slots of one table.
#[derive(Clone, Copy)]
struct TableUse {
    generation: i32,
    /// Number of slots that no id was given since the table was empty.
    unused: usize,
}

impl Counters {
    pub fn new(indexers: usize, states: usize, slots: usize) -> Result<Self> {
        const WHAT: &str = "counters";
        let (count, words) = (indexers.saturating_mul(states), slots.div_ceil(64));
        let empty = TableUse { generation: 0, unused: slots };
        let tables = reserve::filled(WHAT, count, empty)?.into();
        let unused = reserve::filled(WHAT, count.saturating_mul(words), u64::MAX)?.into();
        Ok(Self { total: Stats::default(), tables, unused, slots, states })
    }

    /// Notes that every table is empty.
    pub fn emptied(&mut self) {
        self.tables.iter_mut().for_each(|table| table.unused = self.slots);
        self.unused.fill(u64::MAX);
    }

    /// Notes that the table of a state is empty.
    pub fn emptied_table(&mut self, indexer: usize, state: usize) {
        let table = indexer * self.states + state;
        self.begin(table, self.tables[table].generation);
    }

    /// Notes that a table has a new generation and no used slot.
    fn begin(&mut self, table: usize, generation: i32) {
        let words = self.slots.div_ceil(64);
        self.tables[table] = TableUse { generation, unused: self.slots };
        self.unused[table * words..][..words].fill(u64::MAX);
    }

    /// Notes that the tables of a state became copies of those of another one, as far as these are of
    /// its generation, and are empty elsewhere.
    pub fn forked(&mut self, [from, to]: [usize; 2], [expected, generation]: [i32; 2]) {
        let words = self.slots.div_ceil(64);
        for first in (0..self.tables.len()).step_by(self.states) {
            let (from, to) = (first + from, first + to);
            self.begin(to, generation);
            if self.tables[from].generation == expected {
                self.tables[to].unused = self.tables[from].unused;
                self.unused.copy_within(from * words..(from + 1) * words, to * words);
            }
        }
    }

    /// Counts a planned batch.
    pub fn planned(&mut self, batch: &Batch<'_>, plan: &Plan) {
        let selected: u64 = plan.valid().iter().map(|&n| n as u64).sum();
        let misses = plan.total_misses() as u64;
        self.total.plans += 1;
        self.total.misses += misses;
        self.total.hits += selected - misses;
        self.total.evictions += misses;
        let words = self.slots.div_ceil(64);
        for (request, state) in named(batch.state) {
            let index = batch.indexer * self.states + state;
            if self.tables[index].generation != batch.generation[request] {
                self.begin(index, batch.generation[request]);
            }
            let (table, bits) = (&mut self.tables[index], &mut self.unused[index * words..]);
            // Most tables are full, and then every miss takes a used slot.
            if table.unused == 0 {
                continue;
            }
            for &slot in plan.misses(request).slot {
                let (word, bit) = (slot as usize / 64, slot as usize % 64);
                let first = bits[word] >> bit & 1;
                bits[word] &= !(1 << bit);
                table.unused -= first as usize;
                self.total.evictions -= first;
            }
        }
    }

    /// Counts an append of `bytes` bytes to some layers.
    pub fn appended(&mut self, time: Duration, layers: usize, bytes: usize) {
        self.total.appends += layers as u64;
        self.total.append_time += time;
        self.total.appended_bytes += bytes as u64;
    }

    /// Adds the time of a step; `plan` is the part of it in Stage One, if the device knows it.
    pub fn stepped(&mut self, time: Duration, plan: Option<Duration>) {
        match plan {
            Some(plan) => {
                self.total.plan_time += plan;
                self.total.transfer_time += time.saturating_sub(plan);
            }
            None => self.total.step_time += time,
        }
    }
}
