//! Stage Two over a pool in a file: the records of a plan's misses are read, all in flight at once, and
//! each is copied to its slots while others are still read.
//!
//! If the layers of an indexer share records, these are read into the plan's bounce buffer, from which the
//! other layers copy. The record of a single layer is read into a bounce buffer of the engine.

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{io, mem};

use super::records_copy::RecordsCopy;
use super::worker_pool::{Stage, WorkerPool};
use crate::call::HostCall;
use crate::copy::Copier;
use crate::disk::{ALIGNMENT, Layout, Reader};
use crate::plan::{MissRecords, Plan};
use crate::pool::HostPool;
use crate::resources::Resources;
use crate::system::address::Address;
use crate::system::allocator::Allocator;
use crate::system::array::ProcessMemory;
use crate::system::available_memory;
use crate::{Error, Result};

/// The bytes of the engine's bounce buffer, unless a record is longer.
const SHARED_BYTES: usize = 1 << 20;
/// The most bytes of a plan's bounce buffer, unless a record is longer. If the records of a plan take more,
/// they are read again for each transfer.
const MAX_KEPT_BYTES: usize = 32 << 20;
/// The most records of a list, of which a few hundred are in flight at once.
const MAX_LIST: usize = 4096;

/// Returns the records' bytes of the indexers with one layer, or of those with several.
fn record_bytes(layout: &Layout, several: bool) -> impl Iterator<Item = usize> + Clone {
    let of_kind = move |&indexer: &usize| (layout.group_layers(indexer) > 1) == several;
    (0..layout.indexers()).filter(of_kind).map(|indexer| layout.record_bytes(indexer))
}

/// Returns the bytes of the bounce buffer of an engine over a pool with this layout; 0 if it needs none.
pub(super) fn engine_bytes(layout: Option<&Layout>) -> usize {
    let record = layout.and_then(|layout| record_bytes(layout, false).max());
    record.map_or(0, |record| SHARED_BYTES.max(record))
}

/// Returns the bytes of the bounce buffer of a plan whose miss lists have `places` places; 0 if no layers
/// share records.
fn kept_bytes(layout: &Layout, places: usize) -> usize {
    let record = record_bytes(layout, true).max().unwrap_or(0);
    record.saturating_mul(places).min(MAX_KEPT_BYTES.max(record))
}

/// Returns the bytes that a plan over a pool with this layout takes whose miss lists have `places` places.
pub(super) fn plan_bytes(layout: Option<&Layout>, places: usize) -> Result<usize> {
    let Some(layout) = layout else { return Ok(0) };
    Ok(MissRecords::bytes_needed(places)?.saturating_add(kept_bytes(layout, places)))
}

/// Allocates a bounce buffer; none for 0 bytes. The kernel writes it while a read is in flight, so that no
/// Rust reference into it exists then.
fn bounce_buffer(
    bytes: usize,
    allocator: Option<&Arc<dyn Allocator>>,
) -> Result<Option<Arc<ProcessMemory>>> {
    let zeroed = || ProcessMemory::zeroed("bounce buffer", bytes, ALIGNMENT, allocator);
    (bytes != 0).then(|| zeroed().map(Arc::new)).transpose()
}

/// What an engine has to read records.
pub(super) struct RecordsReader {
    reader: Reader,
    /// The bounce buffer for the records of single layers.
    bounce: Option<Arc<ProcessMemory>>,
    /// The memory of reads that did not end within the time limit.
    lost: Option<Arc<ProcessMemory>>,
    /// How long transfers have waited for reads, without the copies meanwhile.
    wait: Duration,
}

impl RecordsReader {
    /// Returns what reads the records of a pool; `None` if its rows have addresses.
    pub fn new(pool: &HostPool, allocator: Option<&Arc<dyn Allocator>>) -> Result<Option<Self>> {
        let Some(store) = pool.store() else { return Ok(None) };
        let bounce = bounce_buffer(engine_bytes(Some(store.layout())), allocator)?;
        Ok(Some(Self {
            reader: Reader::new(store, MAX_LIST)?,
            bounce,
            lost: None,
            wait: Duration::ZERO,
        }))
    }

    /// Allocates what a plan needs.
    pub fn prepare(&self, plan: &mut Plan, allocator: Option<&Arc<dyn Allocator>>) -> Result<()> {
        let (places, layout) = (plan.max_tokens * plan.k, self.reader.store().layout());
        let bytes = plan_bytes(Some(layout), places)?;
        if allocator.is_none() {
            available_memory::check("plan's records", bytes)?;
        }
        let bounce = bounce_buffer(kept_bytes(layout, places), allocator)?;
        plan.records =
            Some(Box::new(MissRecords::new(places, plan.max_requests, bounce, allocator)?));
        Ok(())
    }

    /// Copies the misses of a plan to some layers of its indexer.
    pub fn transfer(
        &mut self,
        resources: &Resources,
        copier: Copier,
        workers: &WorkerPool,
        plan: &mut Plan,
        call: &HostCall<'_>,
    ) -> Result<()> {
        self.settle()?;
        // An earlier transfer may have been refused on the way.
        self.reader.clear();
        // What the plan holds counts again once everything that was written since was read.
        let (held, stamp) = (plan.sort_records(), self.reader.store().stamp());
        let store = Arc::clone(self.reader.store());
        let copy = RecordsCopy::new(resources, &store, copier, plan, call)?;
        let kept = self.copy(copy, workers, held);
        plan.keep_records(matches!(kept, Ok(true)).then_some(stamp));
        // After an error the call is repeated, and finds them again.
        plan.take_lost(kept.is_ok());
        kept.map(drop)
    }

    /// Returns how long transfers have waited for reads since the last call of this method.
    pub fn take_wait(&mut self) -> Duration {
        mem::take(&mut self.wait)
    }

    /// Waits for reads of an earlier transfer, which may still write to a bounce buffer.
    fn settle(&mut self) -> Result<()> {
        let left = self.reader.under_way();
        let (timeout, start) = (self.reader.store().timeout(), Instant::now());
        let settled = left == 0 || self.reader.settle(timeout);
        self.wait += start.elapsed();
        if !settled {
            let path = self.reader.store().info().path;
            let what = format!("{left} reads of an earlier transfer from {path}");
            let remedy =
                "wait until the device answers and repeat the call, or raise the time limit";
            return Err(Error::os("io_uring_enter", what, io::ErrorKind::TimedOut, remedy));
        }
        self.lost = None;
        Ok(())
    }

    /// Copies the records of a plan to the layers, and reads them first unless the plan holds them, with the
    /// store's stamp `held`. Returns whether the plan holds them afterwards.
    fn copy(
        &mut self,
        mut copy: RecordsCopy<'_>,
        workers: &WorkerPool,
        held: Option<u64>,
    ) -> Result<bool> {
        let count = copy.records.count();
        let shared = copy.store.layout().group_layers(copy.plan.indexer) > 1;
        let bounce = if shared { &copy.records.bounce } else { &self.bounce };
        let memory = bounce.clone().ok_or_else(Error::broken_device)?;
        let fit = memory.len() / copy.record_bytes;
        let (most, keeps) = (MAX_LIST.min(fit), shared && count <= fit);
        copy.bounce = Address(memory.ptr());
        copy.copy_fresh();
        if let Some(held) = held {
            let rewritten = |&record: &usize| {
                copy.store.written_since(copy.plan.indexer, copy.row(record), held)
            };
            let mut rewritten = (0..count).filter(rewritten).peekable();
            while rewritten.peek().is_some() {
                self.read(&copy, rewritten.by_ref().take(MAX_LIST), &memory, &mut |_| {})?;
            }
            copy.share(workers)?;
            return Ok(true);
        }
        for start in (0..count).step_by(most) {
            let range = start..count.min(start + most);
            copy.first = if keeps { 0 } else { start };
            // SAFETY: the record was read to its address, where nothing else writes during the copy, and each
            // miss has a slot of its own.
            let arrived = |record: usize| unsafe { copy.copy(record..record + 1) };
            if self.reader.io_uring() {
                self.read(&copy, range.clone(), &memory, &mut |n| arrived(start + n))?;
            } else {
                // Threads that wait and copy at once are not told apart.
                let start = Instant::now();
                let read = Self::read_by_threads(&copy, workers, range, &arrived);
                self.wait += start.elapsed();
                read?;
            }
        }
        Ok(keeps)
    }

    /// Reads records to their addresses, which are in `memory`, and calls `done` with the place in the list of
    /// each that has arrived.
    fn read(
        &mut self,
        copy: &RecordsCopy<'_>,
        records: impl Iterator<Item = usize>,
        memory: &Arc<ProcessMemory>,
        done: &mut dyn FnMut(usize),
    ) -> Result<()> {
        for record in records {
            let (row, to) = (copy.row(record), copy.address(record));
            // SAFETY: nothing uses these bytes until the reads are done: `lost` keeps the memory if they are
            // not, and no later transfer begins before.
            unsafe { self.reader.push(copy.plan.indexer, row, to)? };
        }
        let (start, mut copying) = (Instant::now(), Duration::ZERO);
        let result = self.reader.run(&mut |place| {
            let arrived = Instant::now();
            done(place);
            copying += arrived.elapsed();
        });
        self.wait += start.elapsed().saturating_sub(copying);
        if self.reader.under_way() > 0 {
            self.lost = Some(Arc::clone(memory));
        }
        result
    }

    /// Reads records to their addresses, each in one of the threads, and calls `done` for each there.
    fn read_by_threads(
        copy: &RecordsCopy<'_>,
        workers: &WorkerPool,
        range: Range<usize>,
        done: &(impl Fn(usize) + Sync),
    ) -> Result<()> {
        let failed = OnceLock::new();
        let piece = |n: usize, _: usize| {
            let record = range.start + n;
            let (row, to) = (copy.row(record), copy.address(record));
            // SAFETY: each record has an address of its own, which nothing else uses during the call.
            match unsafe { copy.store.read_record(copy.plan.indexer, row, to) } {
                Ok(()) => done(record),
                // A later error tells no more.
                Err(error) => drop(failed.set(error)),
            }
        };
        workers.launch(u64::MAX, None, Some(Stage { pieces: range.len(), run: &piece }))?;
        failed.into_inner().map_or(Ok(()), Err)
    }
}

impl Drop for RecordsReader {
    fn drop(&mut self) {
        // The kernel may write to the memory later.
        if self.settle().is_err() {
            mem::forget(self.lost.take());
        }
    }
}
