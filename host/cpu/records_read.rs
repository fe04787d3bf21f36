//! Stage Two over a pool in a file: the records of a plan's misses are read into a bounce buffer, all in
//! flight at once, and each is copied to its slots while others are still read.
//!
//! If the layers of an indexer share records, the bounce buffer is the plan's, and its other layers copy
//! from it. Otherwise all plans share one of the engine.

use std::ops::Range;
use std::sync::Arc;
use std::{io, mem};

use super::records_copy::RecordsCopy;
use super::worker_pool::{Stage, WorkerPool};
use crate::allocator::Allocator;
use crate::batch::Layer;
use crate::bounce::Bounce;
use crate::copy::Copier;
use crate::disk::{Layout, Reader, Store};
use crate::plan::{Plan, Records};
use crate::resources::{Config, Resources};
use crate::written::Written;
use crate::{Error, Result, available_memory};

/// The bytes of the engine's bounce buffer, unless a record is longer.
const SHARED_BYTES: usize = 1 << 20;
/// The most bytes of a plan's bounce buffer, unless a record is longer. What a plan misses beyond it is
/// read again for each layer.
const MAX_KEPT_BYTES: usize = 32 << 20;

/// What an engine has to read records.
pub(super) struct RecordsReader {
    reader: Reader,
    shared: Arc<Bounce>,
    /// The bounce buffer of reads that did not end within the time limit.
    lost: Option<Arc<Bounce>>,
}

/// Returns the bytes of the bounce buffer of an engine.
pub(super) fn engine_bytes(layout: &Layout) -> usize {
    SHARED_BYTES.max(layout.max_record_bytes())
}

/// Returns the bytes that a plan takes whose miss lists have `places` places.
pub(super) fn plan_bytes(layout: &Layout, places: usize) -> usize {
    Records::bytes_needed(places).saturating_add(kept_bytes(layout, places))
}

/// Returns the bytes of the bounce buffer of a plan; 0 if no layers share records.
fn kept_bytes(layout: &Layout, places: usize) -> usize {
    let shared = (0..layout.indexers()).filter(|&indexer| layout.group_layers(indexer) > 1);
    let record = shared.map(|indexer| layout.record_bytes(indexer)).max().unwrap_or(0);
    record.saturating_mul(places).min(MAX_KEPT_BYTES.max(record))
}

impl RecordsReader {
    pub fn new(store: &Arc<Store>, config: &Config) -> Result<Self> {
        let layout = store.layout();
        let least = (0..layout.indexers()).map(|indexer| layout.record_bytes(indexer)).min();
        let longest = engine_bytes(layout).max(kept_bytes(layout, usize::MAX));
        let most = longest / least.unwrap_or(1);
        let shared = Bounce::new(engine_bytes(layout), config.allocator.as_ref())?;
        Ok(Self { reader: Reader::new(store, most)?, shared, lost: None })
    }

    /// Allocates what a plan needs.
    pub fn prepare(&self, plan: &mut Plan, allocator: Option<&Arc<dyn Allocator>>) -> Result<()> {
        let places = plan.max_tokens * plan.k;
        let layout = self.reader.store().layout();
        if allocator.is_none() {
            available_memory::check("plan's records", plan_bytes(layout, places))?;
        }
        let bytes = kept_bytes(layout, places);
        let bounce = if bytes > 0 { Some(Bounce::new(bytes, allocator)?) } else { None };
        plan.records = Some(Box::new(Records::new(places, bounce, allocator)?));
        Ok(())
    }

    pub fn note_memory(&self, written: &mut Written) -> Result<()> {
        written.add(self.shared.ptr().addr(), self.shared.len(), "engine's bounce buffer")
    }

    /// Copies the misses of a plan to one layer.
    pub fn transfer(
        &mut self,
        resources: &Resources,
        copier: Copier,
        workers: &WorkerPool,
        plan: &mut Plan,
        layer: Layer<'_>,
    ) -> Result<()> {
        let Some(mut records) = plan.records.take() else {
            return Err(Error::broken_device());
        };
        let done = self.settle().and_then(|()| {
            let rows = &plan.miss[super::stage_one::ROW];
            records.sort((0..plan.requests).flat_map(|request| plan.places(request)), rows);
            self.copy(resources, copier, workers, plan, &mut records, layer)
        });
        plan.records = Some(records);
        done
    }

    /// Waits for reads of an earlier transfer, which may still write to slots or bounce buffers.
    fn settle(&mut self) -> Result<()> {
        let left = self.reader.under_way();
        let timeout = self.reader.store().timeout();
        if left > 0 && !self.reader.settle(timeout) {
            let path = self.reader.store().info().path;
            let what = format!("{left} reads of an earlier transfer from {path}");
            let remedy = "wait until the device answers and repeat the call, or raise the time limit";
            return Err(Error::os("io_uring_enter", what, io::ErrorKind::TimedOut, remedy));
        }
        self.lost = None;
        Ok(())
    }

    /// Copies the records of a plan to one layer, and reads them first unless the plan holds them.
    fn copy(
        &mut self,
        resources: &Resources,
        copier: Copier,
        workers: &WorkerPool,
        plan: &Plan,
        records: &mut Records,
        layer: Layer<'_>,
    ) -> Result<()> {
        let store = Arc::clone(self.reader.store());
        let (layout, count) = (store.layout(), records.count());
        let shares = layout.group_layers(plan.indexer) > 1;
        let bounce = records.bounce.as_ref().filter(|_| shares).unwrap_or(&self.shared);
        let bounce = Arc::clone(bounce);
        let capacity = bounce.len() / layout.record_bytes(plan.indexer);
        // What the plan holds counts again once everything that was written since was read.
        let (held, stamp) = (records.held.take(), store.stamp());
        let copy = RecordsCopy::new(resources, &store, copier, (plan, &*records), layer);
        copy.copy_fresh();
        if let Some(held) = held {
            self.refresh(&copy, &bounce, held)?;
            copy.share(workers, bounce.ptr())?;
        } else {
            for start in (0..count).step_by(capacity) {
                let range = start..count.min(start + capacity);
                self.read(&copy, &bounce, range, workers)?;
            }
        }
        copy.result()?;
        if shares && count <= capacity {
            records.held = Some(stamp);
        }
        Ok(())
    }

    /// Reads those records of a plan again that were written after its stamp.
    fn refresh(&mut self, copy: &RecordsCopy<'_>, bounce: &Arc<Bounce>, held: u64) -> Result<()> {
        let (indexer, bytes) = (copy.plan.indexer, copy.record_bytes());
        for record in 0..copy.records.count() {
            let row = copy.row(record);
            if copy.store.written_since(indexer, row, held) {
                // SAFETY: the bounce buffer has room for all records of the plan, which nothing uses until
                // the reads are done: `lost` keeps it if they are not.
                unsafe { self.reader.push(indexer, row, bounce.ptr().add(record * bytes))? };
            }
        }
        self.run(bounce, &mut |_| {})
    }

    /// Reads a range of records, which fit the bounce buffer, and copies each.
    fn read(
        &mut self,
        copy: &RecordsCopy<'_>,
        bounce: &Arc<Bounce>,
        range: Range<usize>,
        workers: &WorkerPool,
    ) -> Result<()> {
        let (indexer, bytes) = (copy.plan.indexer, copy.record_bytes());
        let at = |n: usize| bounce.ptr().wrapping_add(n * bytes);
        // SAFETY: the record was read to `at(n)`, and nothing else writes there during the copy.
        let copied = |n: usize| unsafe { copy.copy(range.start + n..range.start + n + 1, at(n)) };
        if self.reader.io_uring() {
            for (n, record) in range.clone().enumerate() {
                // SAFETY: nothing uses the bounce buffer until the reads are done: `lost` keeps it if
                // they are not.
                unsafe { self.reader.push(indexer, copy.row(record), at(n))? };
            }
            return self.run(bounce, &mut |n| copied(n));
        }
        let piece = |n: usize, _: usize| {
            // SAFETY: each piece has a part of the bounce buffer of its own.
            match unsafe { copy.store.read_record(indexer, copy.row(range.start + n), at(n)) } {
                Ok(()) => copied(n),
                Err(error) => copy.fail(error),
            }
        };
        workers.launch(u64::MAX, None, Some(Stage { pieces: range.len(), run: &piece }))?;
        Ok(())
    }

    /// Runs the reads of the list.
    fn run(&mut self, bounce: &Arc<Bounce>, done: &mut dyn FnMut(usize)) -> Result<()> {
        let result = self.reader.run(done);
        if self.reader.under_way() > 0 {
            self.lost = Some(Arc::clone(bounce));
        }
        result
    }
}

impl Drop for RecordsReader {
    fn drop(&mut self) {
        // The kernel may write to the buffer later.
        if self.settle().is_err() {
            mem::forget(self.lost.take());
        }
    }
}
