//! A launch of the two stages, whose pieces threads claim.
//!
//! The cores of this device are only played: a piece of a stage is one request or the share of one
//! core, and whichever thread is free runs the next one. A thread that the system has descheduled
//! before it claimed a piece delays nobody. SyncAll waits for pieces, not for threads. At the end each
//! thread does what is left of its own pieces.
//!
//! A launch is shared among the workers if one core would need longer than waking them takes. The numbers for that
//! are rough, and a wrong one costs only time: whoever runs a piece, the result is the same. docs/benchmarks.md names
//! the machines on which the measured ones were taken.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::wait::Notify;
use crate::call::Batch;
use crate::{Error, Result};

/// Threads of the caller, for example a serving engine's own pool.
pub trait Executor: Send + Sync {
    /// Calls `task` once with each number in `0..count`, on any threads and at the same time where
    /// it can, and returns when all calls have returned. It is called by one thread at a time. A
    /// call that it leaves out costs only speed.
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync));
}

/// A stage of a launch.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    /// The number of pieces.
    pub pieces: usize,
    /// Runs a piece; it is called once for each, with (piece, worker). No two calls at a time have
    /// the same worker.
    pub run: &'a (dyn Fn(usize, usize) + Sync),
}

thread_local! {
    static IN_PIECE: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread runs a piece of a launch, for a panic hook that keeps quiet about
/// panics that become errors.
pub fn in_piece() -> bool {
    IN_PIECE.get()
}

/// A launch in progress: it lies on the stack of the thread that launches.
pub(super) struct InProgress<'a> {
    one: Option<Stage<'a>>,
    two: Option<Stage<'a>>,
    /// What a thread does, with its worker, when no piece is left.
    last: Option<&'a (dyn Fn(usize) + Sync)>,
    next: [AtomicUsize; 2],
    /// Finished pieces of stage one.
    done: AtomicUsize,
    start: Instant,
    /// Nanoseconds from the start to the end of stage one; 0 before.
    one_done: AtomicU64,
    panicked: AtomicBool,
    sync_all: Notify,
    spin: Duration,
}

impl<'a> InProgress<'a> {
    pub fn new(
        [one, two]: [Option<Stage<'a>>; 2],
        last: Option<&'a (dyn Fn(usize) + Sync)>,
        spin: Duration,
    ) -> Self {
        let (next, done) = (Default::default(), AtomicUsize::new(0));
        let (panicked, one_done) = (AtomicBool::new(false), AtomicU64::new(0));
        let (start, sync_all) = (Instant::now(), Notify::default());
        Self { one, two, last, next, done, start, one_done, panicked, sync_all, spin }
    }

    /// Runs pieces of stage one until none is left, waits for those of other threads (SyncAll), runs
    /// pieces of stage two until none is left, and does what is left of this worker's pieces.
    pub fn run(&self, worker: usize) {
        if let Some(one) = self.one {
            while let Some(piece) = self.claim(0, one) {
                self.run_piece(one, piece, worker);
                if self.done.fetch_add(1, Ordering::AcqRel) + 1 == one.pieces {
                    let nanoseconds = self.start.elapsed().as_nanos() as u64;
                    self.one_done.store(nanoseconds, Ordering::Relaxed);
                    self.sync_all.notify();
                }
            }
            if self.two.is_some() {
                self.sync_all.wait(self.spin, || self.is_done());
            }
        }
        if let Some(two) = self.two {
            while !self.panicked.load(Ordering::Acquire)
                && let Some(piece) = self.claim(1, two)
            {
                self.run_piece(two, piece, worker);
            }
        }
        if let Some(last) = self.last {
            self.run_piece(Stage { pieces: 1, run: &|_, worker| last(worker) }, 0, worker);
        }
    }

    /// Runs the launch on the caller's threads, with at most `threads` workers.
    pub fn run_on(&self, executor: &dyn Executor, threads: usize) {
        let started = AtomicUsize::new(0);
        let task = |_: usize| {
            // The numbers count calls, because an executor may repeat its own.
            let worker = started.fetch_add(1, Ordering::Relaxed);
            if worker < threads {
                self.run(worker);
            }
        };
        let run = || executor.run(threads, &task);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
            core::mem::forget(payload);
            self.panicked.store(true, Ordering::SeqCst);
        }
        // No task runs any more. Pieces are left only if the executor has left out calls.
        self.run(0);
    }

    /// Returns whether all pieces of stage one have ended.
    pub fn is_done(&self) -> bool {
        self.one.is_none_or(|one| self.done.load(Ordering::Acquire) == one.pieces)
    }

    fn claim(&self, stage: usize, of: Stage<'_>) -> Option<usize> {
        let piece = self.next[stage].fetch_add(1, Ordering::Relaxed);
        (piece < of.pieces).then_some(piece)
    }

    /// Runs a piece. It catches a panic, so that the other threads do not wait for ever.
    fn run_piece(&self, stage: Stage<'_>, piece: usize, worker: usize) {
        let outer = IN_PIECE.replace(true);
        let ran = catch_unwind(AssertUnwindSafe(|| (stage.run)(piece, worker)));
        IN_PIECE.set(outer);
        if let Err(payload) = ran {
            // The payload's destructor may panic, too.
            core::mem::forget(payload);
            self.panicked.store(true, Ordering::SeqCst);
        }
    }

    /// Returns how long stage one took, or an error if a piece has panicked, once every thread has
    /// left the launch.
    pub fn result(&self) -> Result<Duration> {
        if self.panicked.load(Ordering::Acquire) {
            return Err(Error::broken_device());
        }
        Ok(Duration::from_nanos(self.one_done.load(Ordering::Relaxed)))
    }
}

/// Bytes that one core copies in a nanosecond. `avsg bench transfer` copies 8.4 to 11.6 GB/s on two
/// cores (docs/benchmarks.md, "Copying").
const COPIED_BYTES_PER_NANOSECOND: usize = 6;

/// Nanoseconds that one core takes to match an id. `avsg bench match` takes 3.2 to 13.5 us for a row
/// of K = 2048 ids (docs/benchmarks.md, "Matching").
const MATCH_NANOSECONDS_PER_ID: usize = 4;

/// Ids of which one is taken to miss, before Stage One has counted the misses. It is a choice, not a
/// measurement: in docs/benchmarks.md ("Hit rates") 0.2 to 25 % of the ids miss if S is 2 to 4 times K.
const IDS_PER_MISS: usize = 10;

/// The least nanoseconds of work that are shared if every worker is awake, and if one sleeps. They are
/// choices above the 1 us and the 30 to 60 us that a launch then costs the caller, which no command of
/// this repository measures.
const MIN_SHARED_NANOSECONDS: [u64; 2] = [4_000, 60_000];

/// Returns whether a launch whose pieces take one core so long is shared.
pub(super) fn is_shared(nanoseconds: u64, asleep: bool) -> bool {
    nanoseconds >= MIN_SHARED_NANOSECONDS[usize::from(asleep)]
}

/// Returns the nanoseconds in which one core copies rows.
pub(super) fn copy_nanoseconds(rows: usize, row_bytes: usize) -> u64 {
    (rows.saturating_mul(row_bytes) / COPIED_BYTES_PER_NANOSECOND) as u64
}

/// Returns the nanoseconds in which one core runs Stage One; 0 for one request, which is one piece.
pub(super) fn match_nanoseconds(batch: &Batch<'_>) -> u64 {
    if batch.requests() > 1 { (ids(batch) * MATCH_NANOSECONDS_PER_ID) as u64 } else { 0 }
}

/// Returns the misses that a batch is taken to have.
pub(super) fn expected_misses(batch: &Batch<'_>) -> usize {
    ids(batch) / IDS_PER_MISS
}

fn ids(batch: &Batch<'_>) -> usize {
    batch.tokens() * batch.k
}

#[cfg(test)]
mod tests;
