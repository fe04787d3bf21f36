//! Stage Two over a pool in a file: the records of a plan's misses are read, all in flight at once, and
//! each is copied to its slots while others are still read.
//!
//! The kernel reads into bounce buffers while a transfer is under way, and the thread that waits for it copies.
//! Without io_uring the workers read and copy meanwhile. If the layers of an indexer share records, these are read
//! into the plan's bounce buffer, from which the other layers copy. The record of a single layer is read into a
//! bounce buffer of the transfer.

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{io, mem};

use super::background::{Background, Job};
use super::records_copy::RecordsCopy;
use crate::copy::Copier;
use crate::disk::{Layout, Reader};
use crate::plan::{MissRecords, Plan};
use crate::pool::HostPool;
use crate::resources::Resources;
use crate::system::allocator::Allocator;
use crate::system::available_memory;
use crate::system::mapping::Mapping;
use crate::{Error, Result};

/// The bytes of the bounce buffer of each transfer under way, unless a record is longer.
const SHARED_BYTES: usize = 1 << 20;
/// The most bytes of a plan's bounce buffer, unless a record is longer. If the records of a plan take more,
/// they are read again for each transfer.
const MAX_KEPT_BYTES: usize = 32 << 20;
/// The most records of a list, of which a few hundred are in flight at once.
const MAX_LIST: usize = 4096;

/// Returns the bytes of a bounce buffer for the indexers with one layer, or for those with several: whole pages of as
/// many bytes as are `wanted` for the longest record; 0 without such indexers.
fn bounce_bytes(layout: &Layout, several: bool, wanted: impl Fn(usize) -> usize) -> usize {
    let of_kind = |&indexer: &usize| (layout.group_layers(indexer) > 1) == several;
    let records = (0..layout.indexers()).filter(of_kind).map(|n| layout.record_bytes(n));
    let page = rustix::param::page_size();
    records.max().map_or(0, |record| wanted(record).next_multiple_of(page))
}

/// Returns the bytes of the bounce buffer of each transfer over a pool with this layout; 0 if it needs none.
pub(super) fn transfer_bytes(layout: Option<&Layout>) -> usize {
    layout.map_or(0, |layout| bounce_bytes(layout, false, |record| SHARED_BYTES.max(record)))
}

/// Returns the bytes of the bounce buffer of a plan whose miss lists have `places` places; 0 if no layers
/// share records.
fn kept_bytes(layout: &Layout, places: usize) -> usize {
    let most = |record| MAX_KEPT_BYTES.max(record);
    bounce_bytes(layout, true, |record| record.saturating_mul(places).min(most(record)))
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
) -> Result<Option<Arc<Mapping>>> {
    let zeroed = || Mapping::unforked("bounce buffer", bytes, allocator);
    (bytes != 0).then(|| zeroed().map(Arc::new)).transpose()
}

/// What a transfer is doing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// The kernel reads records.
    Reads,
    /// Workers copy records, or read and copy them.
    Job,
    /// Nothing is left to start.
    Nothing,
}

/// What reads the records of one transfer at a time.
pub(super) struct RecordsReader {
    /// Its number among those of the engine.
    place: usize,
    reader: Reader,
    /// The bounce buffer for the records of single layers.
    bounce: Option<Arc<Mapping>>,
    /// The memory of the transfer that was begun last, to which reads may be under way.
    target: Option<Arc<Mapping>>,
    /// How long transfers have waited for reads, without the copies meanwhile.
    pub wait: Duration,
    doing: Doing,
    /// The records that are read, or were last.
    listed: Range<usize>,
    /// The store's stamp of the records that the plan held when the transfer began, and that of then.
    held: Option<u64>,
    stamp: u64,
    /// The first error of a thread that read.
    failed: OnceLock<Error>,
}

impl RecordsReader {
    /// Returns what reads the records of a pool.
    pub fn new(
        pool: &HostPool,
        place: usize,
        allocator: Option<&Arc<dyn Allocator>>,
    ) -> Result<Option<Self>> {
        let Some(store) = pool.store() else { return Ok(None) };
        Ok(Some(Self {
            place,
            reader: Reader::new(store, MAX_LIST)?,
            bounce: bounce_buffer(transfer_bytes(Some(store.layout())), allocator)?,
            target: None,
            wait: Duration::ZERO,
            doing: Doing::Nothing,
            listed: 0..0,
            held: None,
            stamp: 0,
            failed: OnceLock::new(),
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

    /// Starts to copy the misses of a plan to some layers of its indexer.
    ///
    /// # Safety
    /// As for [`Background::start`], about the resources, the plan's arrays and the list of layers, until
    /// [`Self::wait`] was called.
    pub unsafe fn begin(
        &mut self,
        (resources, copier, background): (&Resources, Copier, &mut Background),
        plan: &mut Plan,
        layers: &[usize],
    ) -> Result<()> {
        self.reader.clear();
        // What the plan holds counts again once everything that was written since was read.
        (self.held, self.stamp) = (plan.sort_records(), self.reader.store().stamps.now());
        (self.listed, self.failed, self.doing) = (0..0, OnceLock::new(), Doing::Nothing);
        let (mut copy, memory) =
            RecordsCopy::new((resources, copier), plan, layers, self.bounce.as_ref())?;
        self.target = Some(memory);
        // SAFETY: what the copy refers to is kept (`# Safety`).
        unsafe { self.advance(background, &mut copy) }
    }

    /// Returns whether nothing is to be waited for that was started.
    pub fn is_done(&mut self, background: &Background) -> bool {
        match self.doing {
            // The wait returns the error.
            Doing::Reads => self.reader.is_done().unwrap_or(true),
            Doing::Job => background.is_done(self.place),
            Doing::Nothing => true,
        }
    }

    /// Ends the transfer that [`Self::begin`] has started.
    pub fn wait(
        &mut self,
        (resources, copier, background): (&Resources, Copier, &mut Background),
        plan: &mut Plan,
        layers: &[usize],
    ) -> Result<()> {
        let copy = RecordsCopy::new((resources, copier), plan, layers, self.bounce.as_ref());
        let kept = copy.and_then(|(copy, _)| self.complete(background, copy));
        self.doing = Doing::Nothing;
        if self.reader.under_way() == 0 {
            self.target = None;
        }
        let held = matches!(kept, Ok(true)).then_some(self.stamp);
        plan.records.iter_mut().for_each(|records| records.held = held);
        // After an error the call is repeated, and finds them again.
        plan.take_lost(kept.is_ok());
        kept.map(drop)
    }

    /// Waits for reads of a transfer that has failed, which may still write to a bounce buffer.
    pub fn settle(&mut self) -> Result<()> {
        if self.doing != Doing::Nothing || self.target.is_none() {
            return Ok(());
        }
        let left = self.reader.under_way();
        let (timeout, start) = (self.reader.store().timeout(), Instant::now());
        let settled = left == 0 || self.reader.settle(timeout);
        self.wait += start.elapsed();
        if !settled {
            let file = self.reader.store().info().file;
            let what = format!("{left} reads of an earlier transfer from {}", file.path.display());
            let remedy =
                "wait until the device answers and repeat the call, or raise the time limit";
            return Err(Error::os("io_uring_enter", what, io::ErrorKind::TimedOut, remedy));
        }
        self.target = None;
        Ok(())
    }

    /// Starts what comes next.
    ///
    /// # Safety
    /// As for [`Background::start`].
    unsafe fn advance(
        &mut self,
        background: &mut Background,
        copy: &mut RecordsCopy<'_>,
    ) -> Result<()> {
        let (count, start, before) = (copy.records.count, self.listed.end, self.doing);
        (self.listed, self.doing) = (start..start, Doing::Nothing);
        copy.start_at(start);
        let most = MAX_LIST.min(copy.room);
        if !self.reader.io_uring() {
            self.listed.end = if copy.kept { count } else { count.min(start + most) };
            // SAFETY: as for this function.
            return unsafe { self.start_job(background, copy, self.listed.clone()) };
        }
        let mut listed = 0;
        while self.listed.end < count && listed < most {
            let record = self.listed.end;
            self.listed.end += 1;
            if copy.is_missing(record, self.held) {
                let (row, to) = (copy.row(record), copy.address(record));
                // SAFETY: nothing uses these bytes until the reads are done: `target` keeps the memory if they
                // are not, and no later transfer begins before.
                unsafe { self.reader.push(copy.indexer, row, to)? };
                listed += 1;
            }
        }
        if listed > 0 {
            self.reader.start();
            self.doing = Doing::Reads;
        } else if self.held.is_some() && before != Doing::Job {
            // SAFETY: as for this function.
            return unsafe { self.start_job(background, copy, 0..count) };
        }
        Ok(())
    }

    /// Lets workers copy records that are there, if there are any. Without io_uring they read them first.
    ///
    /// # Safety
    /// As for [`Background::start`].
    unsafe fn start_job(
        &mut self,
        background: &mut Background,
        copy: &RecordsCopy<'_>,
        records: Range<usize>,
    ) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        self.doing = Doing::Job;
        let (pieces, held, nanoseconds) = if self.reader.io_uring() {
            // None was written since it was read.
            (copy.resources.config.cores, Some(u64::MAX), copy.nanoseconds())
        } else {
            (records.len(), self.held, u64::MAX)
        };
        let (copy, failed, start) = (copy.clone(), &self.failed, Instant::now());
        let job = Job::Records { copy, records, pieces, held, failed };
        // SAFETY: what the copy refers to is kept (`# Safety`), and the drop of the engine ends the job before that of
        // this value.
        let started = unsafe { background.start(self.place, job, (pieces, nanoseconds)) };
        self.job_waited(start);
        started
    }

    /// Counts the time of a job that reads. Threads that wait and copy at once are not told apart.
    fn job_waited(&mut self, start: Instant) {
        if !self.reader.io_uring() {
            self.wait += start.elapsed();
        }
    }

    /// Copies the records to the layers as they arrive. Returns whether the plan holds them afterwards.
    fn complete(&mut self, background: &mut Background, mut copy: RecordsCopy<'_>) -> Result<bool> {
        copy.start_at(self.listed.start);
        while self.doing != Doing::Nothing {
            let (start, mut copying) = (Instant::now(), Duration::ZERO);
            if self.doing == Doing::Job {
                let ended = background.finish(self.place);
                self.job_waited(start);
                ended?;
                self.failed.take().map_or(Ok(()), Err)?;
            } else {
                let (first, held) = (self.listed.start, self.held);
                let result = self.reader.finish(&mut |place| {
                    let (arrived, record) = (Instant::now(), first + place);
                    if held.is_none() {
                        // SAFETY: the record was read to its address, where nothing else writes during the
                        // copy, and each miss has a slot of its own.
                        unsafe { copy.copy(record..record + 1) };
                    }
                    copying += arrived.elapsed();
                });
                self.wait += start.elapsed().saturating_sub(copying);
                result?;
            }
            // SAFETY: this function ends what it starts, or the drop of the engine does after a panic, before
            // anything that the copy refers to is gone.
            unsafe { self.advance(background, &mut copy)? };
        }
        Ok(copy.kept)
    }
}

impl Drop for RecordsReader {
    fn drop(&mut self) {
        self.doing = Doing::Nothing;
        // The kernel may write to the memory later.
        if self.settle().is_err() {
            mem::forget(self.target.take());
        }
    }
}
