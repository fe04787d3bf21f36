//! The CPU device's cores: pinned threads that play the AI cores, with a spin barrier as SyncAll.
//!
//! A launch is two stages over numbered cores. The caller's thread is worker 0; the others wait for a
//! launch by spinning for a while and parking after that. Nothing here allocates or takes a blocking
//! lock once the workers run. There are never more workers than CPUs, because workers spin; a core
//! count above that is played by fewer workers, core c by worker c mod workers.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle, Thread};

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::cpus::{allowed_cpus, check_cores};
use crate::{Error, Result};

/// How often a waiting worker looks before it parks: some 200 microseconds, so that the layers of one
/// forward find it awake.
const SPINS: u32 = 80_000;
/// How often the launching thread looks before it lets others run: on a machine with more to do than
/// CPUs, the worker that it waits for may need this very one.
const PATIENCE: u32 = 2_000;
/// Nanoseconds of work below which it is not worth to share it with workers that are awake, or parked
/// (measured: a launch costs the caller 1 and 30 to 60 microseconds).
const WORTH_SHARING: [u64; 2] = [4_000, 60_000];

type Stage<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// A launch: both stages, each called with (core, worker).
#[derive(Clone, Copy)]
struct Job<'a> {
    one: Option<Stage<'a>>,
    two: Option<Stage<'a>>,
}

struct Shared {
    cores: usize,
    workers: usize,
    job: UnsafeCell<Job<'static>>,
    launch: AtomicU64,
    running: AtomicUsize,
    stop: AtomicBool,
    panicked: AtomicBool,
    sync_all: spin::Barrier,
    parked: Box<[AtomicBool]>,
}

// SAFETY: `job` is written by the launching thread only while `running` is 0 (so nobody reads it), and
// read by workers only after they have seen the new `launch` number, which is stored after it.
unsafe impl Sync for Shared {}

/// The threads that play the cores of one device.
pub struct WorkerPool {
    shared: Arc<Shared>,
    threads: Box<[Thread]>,
    joins: Vec<JoinHandle<()>>,
}

impl WorkerPool {
    /// Starts the workers of a device of `cores` cores, each pinned to a CPU of its own.
    ///
    /// # Errors
    /// If `cores` is 0 or above [`MAX_CORES`], or a thread cannot be started.
    pub fn new(cores: usize) -> Result<Self> {
        check_cores(cores)?;
        let cpus = allowed_cpus();
        let workers = cores.min(cpus.len().max(1));
        let shared = Arc::new(Shared {
            cores,
            workers,
            job: UnsafeCell::new(Job { one: None, two: None }),
            launch: AtomicU64::new(0),
            running: AtomicUsize::new(workers - 1),
            stop: AtomicBool::new(false),
            panicked: AtomicBool::new(false),
            sync_all: spin::Barrier::new(workers),
            parked: (0..workers).map(|_| AtomicBool::new(false)).collect(),
        });
        let mut pool = Self { shared, threads: Box::default(), joins: Vec::new() };
        for worker in 1..workers {
            let shared = Arc::clone(&pool.shared);
            // The caller's thread keeps the first CPU in practice, and is not ours to pin.
            let cpu = cpus.get(worker).copied();
            let body = move || work(&shared, worker, cpu);
            let join = thread::Builder::new()
                .name(format!("avsg-core-{worker}"))
                .spawn(body)
                .map_err(|source| Error::Os {
                    call: "clone",
                    what: format!("worker {worker} of {workers}"),
                    source,
                    remedy: "ask for fewer cores",
                })?;
            pool.joins.push(join);
        }
        // A thread takes memory while it starts, which must not fall into the first step.
        while pool.shared.running.load(Ordering::Acquire) != 0 {
            thread::yield_now();
        }
        pool.threads = pool.joins.iter().map(|j| j.thread().clone()).collect();
        Ok(pool)
    }

    /// Cores of the device.
    pub fn cores(&self) -> usize {
        self.shared.cores
    }

    /// Threads that play them.
    pub fn workers(&self) -> usize {
        self.shared.workers
    }

    /// Runs stage one on every core, then (after SyncAll) stage two. Returns when both are done.
    /// `nanoseconds` is about what all cores together have to do; where waking the workers would take
    /// longer, the caller's thread plays every core. The result is the same.
    ///
    /// # Errors
    /// If a stage panicked: a defect of this library, after which the device's tables are not to be
    /// trusted.
    pub fn launch(
        &mut self,
        nanoseconds: u64,
        one: Option<Stage<'_>>,
        two: Option<Stage<'_>>,
    ) -> Result<()> {
        let shared = &*self.shared;
        let asleep = shared.parked[1..].iter().any(|p| p.load(Ordering::Relaxed));
        if shared.workers == 1 || nanoseconds < WORTH_SHARING[usize::from(asleep)] {
            play(shared, 0, 1, Job { one, two });
            return shared.outcome();
        }
        // SAFETY: only the lifetime changes. Workers drop the references before they leave `running`,
        // and this function returns only after `running` is 0.
        let job = unsafe { core::mem::transmute::<Job<'_>, Job<'static>>(Job { one, two }) };
        shared.running.store(shared.workers - 1, Ordering::Relaxed);
        // SAFETY: `&mut self`, and the last launch ended with `running` 0: no worker reads it now.
        unsafe { *shared.job.get() = job };
        shared.launch.fetch_add(1, Ordering::SeqCst);
        for (worker, thread) in self.threads.iter().enumerate() {
            if shared.parked[worker + 1].load(Ordering::SeqCst) {
                thread.unpark();
            }
        }
        play(shared, 0, shared.workers, Job { one, two });
        let mut spins = 0u32;
        while shared.running.load(Ordering::Acquire) != 0 {
            spins += 1;
            if spins < PATIENCE { core::hint::spin_loop() } else { thread::yield_now() }
        }
        shared.outcome()
    }
}

impl Shared {
    fn outcome(&self) -> Result<()> {
        if self.panicked.load(Ordering::Acquire) {
            let remedy = "destroy the engine and report the defect";
            return Err(Error::Broken { what: "device state", remedy });
        }
        Ok(())
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for join in self.joins.drain(..) {
            join.thread().unpark();
            // A worker catches its panics, so there is nothing to learn from the result.
            let _ = join.join();
        }
    }
}

/// A worker's life.
fn work(shared: &Shared, worker: usize, cpu: Option<usize>) {
    if let Some(cpu) = cpu {
        let mut set = CpuSet::new();
        set.set(cpu);
        // Pinning is for speed; where a container forbids it, the worker runs unpinned.
        let _ = sched_setaffinity(None, &set);
    }
    shared.running.fetch_sub(1, Ordering::Release);
    let mut seen = 0;
    loop {
        let mut spins = 0;
        while shared.launch.load(Ordering::Acquire) == seen {
            if shared.stop.load(Ordering::Acquire) {
                return;
            }
            spins += 1;
            if spins < SPINS {
                core::hint::spin_loop();
                continue;
            }
            shared.parked[worker].store(true, Ordering::SeqCst);
            if shared.launch.load(Ordering::SeqCst) == seen && !shared.stop.load(Ordering::SeqCst) {
                thread::park();
            }
            shared.parked[worker].store(false, Ordering::SeqCst);
        }
        seen += 1;
        // SAFETY: the launch number was raised after `job` was written, and `job` is not written again
        // before this worker has left `running`.
        let job = unsafe { *shared.job.get() };
        play(shared, worker, shared.workers, job);
        shared.running.fetch_sub(1, Ordering::Release);
    }
}

/// One worker's part of a launch of `workers`. A panic must not leave the others in the barrier.
fn play(shared: &Shared, worker: usize, workers: usize, job: Job<'_>) {
    let run = |stage: Option<Stage<'_>>| {
        let Some(stage) = stage else { return };
        let cores = (worker..shared.cores).step_by(workers);
        let played = catch_unwind(AssertUnwindSafe(|| cores.for_each(|core| stage(core, worker))));
        if played.is_err() {
            shared.panicked.store(true, Ordering::SeqCst);
        }
    };
    run(job.one);
    if job.one.is_some() && job.two.is_some() && workers > 1 {
        shared.sync_all.wait();
    }
    if !shared.panicked.load(Ordering::Acquire) {
        run(job.two);
    }
}
