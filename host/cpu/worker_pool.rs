//! The workers of the CPU device, which run the pieces of launches: threads that the pool starts,
//! or the caller's own.
//!
//! The caller's thread is always worker 0. Between launches the started threads spin for a while,
//! then sleep. A launch neither allocates nor takes a lock, and it waits for another thread only
//! while that thread runs a piece. Clones are the same workers, which several engines may share: a
//! launch that finds them in another one runs on its caller's thread alone.
//!
//! The cores of this device are only played: a piece of a stage is one request or the share of one
//! core, and whichever thread is free runs the next one. A thread that the system has descheduled
//! before it claimed a piece delays nobody. SyncAll waits for pieces, not for threads. At the end each
//! thread does what is left of its own pieces.
//!
//! A launch is shared among the workers if one core would need longer than waking them takes. The numbers for that
//! are rough, and a wrong one costs only time: whoever runs a piece, the result is the same. docs/benchmarks.md names
//! the machines on which the measured ones were taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::stages::InProgress;
pub use super::stages::{Executor, Stage, in_piece};
use super::threads::Helpers;
pub use super::threads::WorkerConfig;
use crate::call::Batch;
use crate::system::cpus::MAX_CORES;
use crate::system::fork::Birth;
use crate::{Result, ensure};

/// The workers of one or several engines. A clone stands for the same workers.
#[derive(Clone)]
pub struct WorkerPool(pub(super) Arc<Workers>);

pub(super) struct Workers {
    threads: usize,
    /// How long a thread polls before it sleeps.
    pub spin: Duration,
    /// Whether a launch uses the threads.
    busy: AtomicBool,
    pub birth: Birth,
    kind: Kind,
}

enum Kind {
    Own(Helpers),
    Callers(Arc<dyn Executor>),
}

impl WorkerPool {
    /// Starts all threads but the caller's.
    ///
    /// # Errors
    /// If a number is out of range, a CPU is not one of this process or too few are left to pin to,
    /// or the system refuses a thread. No thread is left then.
    pub fn new(config: &WorkerConfig) -> Result<Self> {
        Self::with_kind(config, || {
            let helpers = Helpers::start(config)?;
            let placed = if config.pin { "pinned" } else { "not pinned" };
            log::debug!("{} worker threads, {placed}", config.threads);
            Ok(Kind::Own(helpers))
        })
    }

    /// Makes workers of the caller's threads, and starts none. `config.threads` is the number of
    /// tasks that a launch passes to the executor.
    ///
    /// # Errors
    /// If the number is out of range, or `cpus` or `pin` is set, which concern started threads.
    pub fn on_executor(config: &WorkerConfig, executor: Arc<dyn Executor>) -> Result<Self> {
        ensure!(!config.pin && config.cpus.is_empty(), "cpus or pin" is "set", but
            "the threads of an executor are placed by their owner"; "leave cpus empty and pin off");
        Self::with_kind(config, || Ok(Kind::Callers(executor)))
    }

    fn with_kind(config: &WorkerConfig, kind: impl FnOnce() -> Result<Kind>) -> Result<Self> {
        let WorkerConfig { threads, spin, .. } = *config;
        ensure!((1..=MAX_CORES).contains(&threads), "worker threads" is threads, but
            "it must be 1..={MAX_CORES}"; "count the caller's thread, too");
        let (busy, birth, kind) = (AtomicBool::new(false), Birth::now(), kind()?);
        Ok(Self(Arc::new(Workers { threads, spin, busy, birth, kind })))
    }

    /// Returns the number of threads that run a launch, the caller's included.
    pub fn threads(&self) -> usize {
        self.0.threads
    }

    /// Runs every piece of stage one, then (SyncAll) every piece of stage two, and returns when all
    /// are done. `nanoseconds` estimates the work of all pieces together; if waking the workers
    /// would take longer, or another launch uses them, the caller's thread runs every piece, with
    /// the same result. Each thread calls `last` with its worker before it leaves. Returns how long stage one took;
    /// zero without it.
    ///
    /// # Errors
    /// If a piece panicked, which is a defect of this library: the remaining pieces may not have
    /// run. If this process was forked from the one that made the pool.
    pub fn launch(
        &self,
        nanoseconds: u64,
        stages: [Option<Stage<'_>>; 2],
        last: Option<&(dyn Fn(usize) + Sync)>,
    ) -> Result<Duration> {
        let launch = InProgress::new(stages, last, self.0.spin);
        // SAFETY: the launch is closed before it ends.
        if unsafe { self.open(&launch, nanoseconds)? } {
            launch.run(0);
            self.close();
        }
        launch.result()
    }

    /// Lets the started threads run a launch until [`Self::close`]. If [`Self::launch`] would not share it with
    /// them, or the threads are those of an executor, it runs all of it before it returns false.
    ///
    /// # Safety
    /// If it returns true, the launch stays where it is until [`Self::close`] has returned, and so does what its
    /// pieces use.
    pub(super) unsafe fn open(&self, launch: &InProgress<'_>, nanoseconds: u64) -> Result<bool> {
        let workers = &*self.0;
        workers.birth.check("worker pool")?;
        let asleep = match &workers.kind {
            Kind::Own(helpers) => helpers.shared.idle.has_sleepers(),
            Kind::Callers(_) => true,
        };
        let alone = workers.threads == 1 || !is_shared(nanoseconds, asleep);
        if alone || workers.busy.swap(true, Ordering::Acquire) {
            launch.run(0);
            return Ok(false);
        }
        match &workers.kind {
            Kind::Own(helpers) => {
                // SAFETY: `busy` was clear, so no launch is open; this one is kept (`# Safety`).
                unsafe { helpers.open(launch) };
                Ok(true)
            }
            Kind::Callers(executor) => {
                launch.run_on(&**executor, workers.threads);
                workers.busy.store(false, Ordering::Release);
                Ok(false)
            }
        }
    }

    /// Ends the launch that [`Self::open`] has returned true for, of which no piece is left to claim.
    pub(super) fn close(&self) {
        if let Kind::Own(helpers) = &self.0.kind {
            helpers.close();
        }
        self.0.busy.store(false, Ordering::Release);
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
fn is_shared(nanoseconds: u64, asleep: bool) -> bool {
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
