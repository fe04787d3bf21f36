//! A launch that the started threads run while its caller does something else.

use std::cell::UnsafeCell;
use std::mem;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use avsg_device::stage_two::share_start;

use super::copies::Transfer;
use super::records_copy::RecordsCopy;
use super::stages::{InProgress, Stage};
use super::worker_pool::WorkerPool;
use crate::{Error, Result};

/// What a transfer leaves to threads, each of which takes the next piece.
pub(super) enum Job<'a> {
    /// Copies of rows of a pool in memory.
    Rows(Transfer<'a>),
    /// Reads of some records, which are cut into so many pieces, and copies of their rows. Those that the plan holds with
    /// this stamp of the store are read only if they were written since.
    Records {
        copy: RecordsCopy<'a>,
        records: Range<usize>,
        pieces: usize,
        held: Option<u64>,
        /// The first error.
        failed: &'a OnceLock<Error>,
    },
}

impl Job<'_> {
    fn run(&self, piece: usize) {
        match self {
            Self::Rows(transfer) => transfer.run(piece),
            Self::Records { copy, records, pieces, held, failed } => {
                let at = |piece| records.start + share_start(records.len(), piece, *pieces);
                let share = at(piece)..at(piece + 1);
                let mut missing = share.clone().filter(|&record| copy.is_missing(record, *held));
                let read = missing.try_for_each(|record| {
                    let (row, to) = (copy.row(record), copy.address(record));
                    // SAFETY: each record has an address of its own, which has room for it and which nothing else
                    // uses until the launch has ended.
                    unsafe { copy.store.read_record(copy.indexer, row, to) }
                });
                match read {
                    // SAFETY: the records are there, the shares do not overlap, and each miss has a slot of its own.
                    Ok(()) => unsafe { copy.copy(share) },
                    // A later error tells no more.
                    Err(error) => drop(failed.set(error)),
                }
            }
        }
    }
}

struct JobCell(UnsafeCell<Option<Job<'static>>>);

// SAFETY: `Background::start` writes the job while no launch is open, and threads read it in one, by shared
// references of `Sync` types.
unsafe impl Sync for JobCell {}
// SAFETY: as for `Sync`.
unsafe impl Send for JobCell {}

/// The launch of an engine that may be open. What it needs is allocated when it is made.
pub(super) struct Background {
    workers: WorkerPool,
    job: Arc<JobCell>,
    /// Runs a piece of the job.
    run: Box<dyn Fn(usize, usize) + Send + Sync>,
    launch: Box<Option<InProgress<'static>>>,
    /// The place of the transfer whose launch is open.
    owner: Option<usize>,
}

impl Background {
    pub fn new(workers: &WorkerPool) -> Self {
        let job = Arc::new(JobCell(UnsafeCell::new(None)));
        let cell = Arc::clone(&job);
        let run = move |piece: usize, _: usize| {
            // SAFETY: a launch is open, so that nothing writes the cell.
            if let Some(job) = unsafe { &*cell.0.get() } {
                job.run(piece);
            }
        };
        Self {
            workers: workers.clone(),
            job,
            run: Box::new(run),
            launch: Box::new(None),
            owner: None,
        }
    }

    /// Starts a job of the transfer at a place, after the job before has ended. It has so many pieces, for which one
    /// thread would need so many nanoseconds. If it is not shared with other threads, this thread has done it when the
    /// call returns.
    ///
    /// # Errors
    /// As for [`WorkerPool::launch`].
    ///
    /// # Safety
    /// What the job refers to stays where it is and is not written until [`Self::finish`] was called for this
    /// place, or this value was dropped in the process that it was made in.
    pub unsafe fn start(
        &mut self,
        place: usize,
        job: Job<'_>,
        (pieces, nanoseconds): (usize, u64),
    ) -> Result<()> {
        self.end()?;
        let run = &raw const *self.run;
        // SAFETY: no launch is open, so that no thread uses the cell. Only lifetimes change: what the job refers to
        // is kept until the launch has ended (`# Safety`), and the function in its box as long as this value, whose
        // drop ends the launch.
        let run = unsafe {
            *self.job.0.get() = Some(mem::transmute::<Job<'_>, Job<'static>>(job));
            &*run
        };
        let stages = [Some(Stage { pieces, run }), None];
        let launch = self.launch.insert(InProgress::new(stages, None, self.workers.0.spin));
        // SAFETY: the launch lies in a box of this value, which changes it after it has closed it.
        if unsafe { self.workers.open(launch, nanoseconds)? } {
            self.owner = Some(place);
            return Ok(());
        }
        launch.result().map(drop)
    }

    /// Returns whether the job of a transfer has ended.
    pub fn is_done(&self, place: usize) -> bool {
        self.owner != Some(place) || (*self.launch).as_ref().is_none_or(InProgress::is_done)
    }

    /// Takes part in the job of a transfer and waits for its end.
    pub fn finish(&mut self, place: usize) -> Result<()> {
        if self.owner == Some(place) { self.end() } else { Ok(()) }
    }

    /// Lets another launch have the workers if the job has ended.
    pub fn release(&mut self) -> Result<()> {
        if self.owner.is_some_and(|place| self.is_done(place)) { self.end() } else { Ok(()) }
    }

    fn end(&mut self) -> Result<()> {
        let (Some(_), Some(launch)) = (self.owner.take(), &*self.launch) else { return Ok(()) };
        launch.run(0);
        self.workers.close();
        launch.result().map(drop)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // A forked child has none of the threads. A panic of a piece tells nobody any more.
        if !self.workers.0.birth.is_past() {
            let _ = self.end();
        }
    }
}
