//! Counters and times of an engine's calls.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use avsg_device::state::header;

use crate::backend::Device;
use crate::call::{Batch, named};
use crate::plan::Plan;
use crate::system::reserve;
use crate::{Result, rows};

/// Declares [`Stats`], and the counter behind each of its numbers.
macro_rules! stats {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// What an engine has done since it was made. Every number only grows, so that the difference of two
        /// readings describes the calls between them. While a call runs, numbers may be of different instants.
        ///
        /// The host does not see what a caller's stream plans and copies: of such calls only
        /// [`Self::queued`] is counted. A load counts as its plans and transfers. Times are those of the
        /// calling thread, from the checked arguments to the result, in nanoseconds.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats { $($(#[$doc])+ pub $name: u64,)+ }

        /// The counters that an engine's calls raise while other threads read them.
        #[derive(Default)]
        pub(super) struct Live {
            $(pub $name: Counter,)+
            /// `[tables]`, the slots in use.
            used: Box<[AtomicU32]>,
            states: usize,
            /// Whether a stream has planned, so that the slots in use are not known.
            pub in_streams: AtomicBool,
        }

        impl StatsReader {
            /// Returns the counters and times of the calls so far.
            pub fn stats(&self) -> Stats {
                Stats { $($name: self.0.$name.get(),)+ }
            }
        }
    };
}

stats! {
    /// Batches planned, with or without a transfer in the same call.
    plans,
    /// Transfers of a plan to a layer, with or without a plan in the same call.
    transfers,
    /// Appends to a layer.
    appends,
    /// Calls that were put into a caller's stream; one for several layers counts for each of them.
    queued,
    /// Selected ids that had a slot.
    hits,
    /// Selected ids that got a slot.
    misses,
    /// Those of the misses whose slot an earlier id had been given since the state was last empty:
    /// the id was evicted, or had been invalidated.
    evictions,
    /// Bytes that transfers copied to slots, from the pool or from fresh rows.
    transferred_bytes,
    /// Bytes of the fresh rows of appends.
    appended_bytes,
    /// Time in Stage One.
    plan_ns,
    /// Time in Stage Two.
    transfer_ns,
    /// Time of steps on an Ascend device, whose stages the host cannot tell apart.
    step_ns,
    /// Time in appends.
    append_ns,
    /// The part of `transfer_ns` in which nothing was done but to wait for reads of a file, and that of
    /// transfers that failed. Without io_uring it includes the copies of the rows that were read.
    read_wait_ns,
}

/// A number that one thread raises.
#[derive(Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn add(&self, n: usize) {
        self.0.store(self.get() + n as u64, Ordering::Relaxed);
    }

    /// Adds nanoseconds, which fit for centuries.
    pub fn add_time(&self, time: Duration) {
        self.add(time.as_nanos() as usize);
    }
}

/// What reads an engine's counters. Reading never waits and delays no call of the engine.
#[derive(Clone)]
pub struct StatsReader(pub(super) Arc<Live>);

impl StatsReader {
    /// Returns the number of slots in use of each state for an indexer: exact on the CPU, while an Ascend
    /// device may have less, because the host does not see which slots `stable_len`, a discard or an
    /// invalidation emptied. `None` once a stream has planned, because the host does not see which states.
    ///
    /// # Errors
    /// If there is no such indexer.
    pub fn used_slots(&self, indexer: usize) -> Result<impl Iterator<Item = Option<usize>> + '_> {
        let Live { used, states, in_streams, .. } = &*self.0;
        rows::index("indexer", indexer, used.len() / states)?;
        let known = !in_streams.load(Ordering::Relaxed);
        let used = used[indexer * states..][..*states].iter();
        Ok(used.map(move |n| known.then(|| n.load(Ordering::Relaxed) as usize)))
    }
}

/// The counters of an engine, and what counting evictions and slots in use takes.
pub(super) struct Counters {
    pub live: Arc<Live>,
    /// `[tables]`.
    tables: Box<[TableUse]>,
    /// `[tables, words]`, one bit for each slot that no id was given since the table was empty.
    unused: Box<[u64]>,
    slots: usize,
}

/// What is known of the slots of one table.
#[derive(Clone, Copy, Default)]
struct TableUse {
    /// Number of slots that no id was given since the table was empty.
    unused: u32,
    /// The largest `seq_len` since then, which all ids are below.
    longest: i32,
    /// Whether some slot that an id was given may be empty.
    holes: bool,
}

impl Counters {
    pub fn new(indexers: usize, states: usize, slots: usize) -> Result<Self> {
        const WHAT: &str = "counters";
        let (count, words) = (indexers.saturating_mul(states), slots.div_ceil(64));
        let used = reserve::defaults(WHAT, count)?.into();
        let tables = reserve::defaults(WHAT, count)?.into();
        let unused = reserve::filled(WHAT, count.saturating_mul(words), 0)?.into();
        let live = Arc::new(Live { used, states, ..Live::default() });
        let mut counters = Self { live, tables, unused, slots };
        counters.emptied(0..count);
        Ok(counters)
    }

    /// Notes that some tables are empty.
    pub fn emptied(&mut self, tables: Range<usize>) {
        let (words, unused) = (self.slots.div_ceil(64), self.slots as u32);
        self.unused[tables.start * words..tables.end * words].fill(u64::MAX);
        self.tables[tables.clone()].fill(TableUse { unused, ..TableUse::default() });
        self.live.used[tables].iter().for_each(|used| used.store(0, Ordering::Relaxed));
    }

    /// Notes that a table became a copy of another one.
    pub fn copied(&mut self, from: usize, to: usize) {
        let words = self.slots.div_ceil(64);
        self.unused.copy_within(from * words..(from + 1) * words, to * words);
        self.tables[to] = self.tables[from];
        let used = self.live.used[from].load(Ordering::Relaxed);
        self.live.used[to].store(used, Ordering::Relaxed);
    }

    /// Notes that some slots of a table were emptied.
    pub fn emptied_slots(&mut self, table: usize, device: &mut dyn Device) {
        self.tables[table].holes = true;
        self.count_used(table, device);
    }

    /// Counts the slots in use of a table. The host reads the table only if it must and the device is the CPU.
    fn count_used(&mut self, index: usize, device: &mut dyn Device) {
        let table = &mut self.tables[index];
        let slots = self.slots as u32;
        let mut used = slots - table.unused;
        if table.holes
            && device.cpu().is_some()
            && let Ok(words) = device.read_table(index)
        {
            let empty: i32 = words[header::WORDS..][..self.slots].iter().map(|id| id >> 31).sum();
            let in_use = slots - empty.unsigned_abs();
            (table.holes, used) = (in_use < used, in_use);
        }
        self.live.used[index].store(used, Ordering::Relaxed);
    }

    /// Counts a planned batch.
    pub fn planned(&mut self, batch: &Batch<'_>, plan: &Plan, device: &mut dyn Device) {
        let selected: usize = plan.valid().iter().map(|&n| n as usize).sum();
        let misses = plan.total_misses();
        let mut first_uses = 0;
        let words = self.slots.div_ceil(64);
        for (request, state) in named(batch.state) {
            let index = batch.indexer * self.live.states + state;
            if plan.before[request].first == plan.number {
                self.emptied(index..index + 1);
            }
            let (table, bits) = (&mut self.tables[index], &mut self.unused[index * words..]);
            table.holes |= (0..table.longest).contains(&batch.stable_len[request]);
            table.longest = table.longest.max(batch.seq_len[request]);
            // Most tables are full, and then every miss takes a used slot.
            if table.unused > 0 {
                for &slot in plan.misses(request).slot {
                    let (word, bit) = (slot as usize / 64, slot as usize % 64);
                    let first = (bits[word] >> bit & 1) as u32;
                    bits[word] &= !(1 << bit);
                    table.unused -= first;
                    first_uses += first;
                }
            }
            self.count_used(index, device);
        }
        let live = &self.live;
        live.plans.add(1);
        live.misses.add(misses);
        live.hits.add(selected - misses);
        live.evictions.add(misses - first_uses as usize);
    }
}
