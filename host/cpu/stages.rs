//! A launch: the pieces of its stages, which threads claim and run.

use std::cell::Cell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::wait::Notify;
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
    stages: [Stage<'a>; 2],
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
        stages: [Option<Stage<'a>>; 2],
        last: Option<&'a (dyn Fn(usize) + Sync)>,
        spin: Duration,
    ) -> Self {
        let stages = stages.map(|stage| stage.unwrap_or(Stage { pieces: 0, run: &|_, _| () }));
        let (next, done) = (Default::default(), AtomicUsize::new(0));
        let (panicked, one_done) = (AtomicBool::new(false), AtomicU64::new(0));
        let (start, sync_all) = (Instant::now(), Notify::default());
        Self { stages, last, next, done, start, one_done, panicked, sync_all, spin }
    }

    /// Runs pieces of stage one until none is left, waits for those of other threads (SyncAll), runs
    /// pieces of stage two until none is left, and does what is left of this worker's pieces.
    pub fn run(&self, worker: usize) {
        let [one, two] = self.stages;
        while let Some(piece) = self.claim(0) {
            self.run_piece(one.run, piece, worker);
            if self.done.fetch_add(1, Ordering::AcqRel) + 1 == one.pieces {
                let nanoseconds = self.start.elapsed().as_nanos() as u64;
                self.one_done.store(nanoseconds, Ordering::Relaxed);
                self.sync_all.notify();
            }
        }
        if two.pieces > 0 {
            self.sync_all.wait(self.spin, || self.is_done());
        }
        while !self.panicked.load(Ordering::Acquire)
            && let Some(piece) = self.claim(1)
        {
            self.run_piece(two.run, piece, worker);
        }
        if let Some(last) = self.last {
            self.run_piece(&|_, worker| last(worker), 0, worker);
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
            mem::forget(payload);
            self.panicked.store(true, Ordering::SeqCst);
        }
        // No task runs any more. Pieces are left only if the executor has left out calls.
        self.run(0);
    }

    /// Returns whether all pieces of stage one have ended.
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.stages[0].pieces
    }

    fn claim(&self, stage: usize) -> Option<usize> {
        let piece = self.next[stage].fetch_add(1, Ordering::Relaxed);
        (piece < self.stages[stage].pieces).then_some(piece)
    }

    /// Runs a piece. It catches a panic, so that the other threads do not wait for ever.
    fn run_piece(&self, run: &dyn Fn(usize, usize), piece: usize, worker: usize) {
        let outer = IN_PIECE.replace(true);
        let ran = catch_unwind(AssertUnwindSafe(|| run(piece, worker)));
        IN_PIECE.set(outer);
        if let Err(payload) = ran {
            // The payload's destructor may panic, too.
            mem::forget(payload);
            self.panicked.store(true, Ordering::SeqCst);
        }
    }

    /// Returns how long stage one took, or an error if a piece has panicked, once every thread has
    /// left the launch.
    pub fn result(&self) -> Result<Duration> {
        if self.panicked.load(Ordering::Acquire) {
            return Err(Error::Broken);
        }
        Ok(Duration::from_nanos(self.one_done.load(Ordering::Relaxed)))
    }
}
