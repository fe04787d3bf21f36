//! The worker threads of the CPU device, which stand in for the AI cores; SyncAll is a spin
//! barrier.
//!
//! A launch runs two stages on numbered cores. The caller's thread is worker 0. Between launches
//! the other workers spin for a while, then park. A launch neither allocates nor takes a blocking
//! lock. Workers spin, so there are never more of them than CPUs; with more cores than workers,
//! worker c mod workers runs core c.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle, Thread};

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::cpus::{allowed_cpus, check_cores};
use crate::{Error, Result};

/// Polls of an idle worker before it parks: about 200 microseconds, so that workers stay awake
/// between the layers of one forward pass.
const POLLS_BEFORE_PARK: u32 = 80_000;
/// Polls of the launching thread before it yields its CPU, because the worker that it waits for may
/// need this CPU.
const POLLS_BEFORE_YIELD: u32 = 2_000;
/// Nanoseconds of work below which the caller's thread runs a launch alone: if all workers are
/// awake, and if one is parked (measured: a launch costs the caller 1 and 30 to 60 microseconds).
const MIN_SHARED_NANOSECONDS: [u64; 2] = [4_000, 60_000];

type Stage<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// The stages of a launch; each is called with (core, worker).
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

// SAFETY: the launching thread writes `job` only while `running` is 0, when no worker reads it.
// Workers read it only after they have seen the new `launch` number, which is stored after it.
unsafe impl Sync for Shared {}

/// The threads that run the cores of one device.
pub struct WorkerPool {
    shared: Arc<Shared>,
    threads: Box<[Thread]>,
    joins: Vec<JoinHandle<()>>,
}

impl WorkerPool {
    /// Starts the workers of a device with `cores` cores. Each is pinned to a CPU of its own.
    ///
    /// # Errors
    /// If `cores` is 0 or above [`MAX_CORES`](crate::cpus::MAX_CORES), or a thread cannot be
    /// started.
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
            // The first CPU is left to the caller's thread, which is not pinned.
            let cpu = cpus.get(worker).copied();
            let body = move || run_worker(&shared, worker, cpu);
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
        // A starting thread allocates memory, which must not happen during the first step.
        while pool.shared.running.load(Ordering::Acquire) != 0 {
            thread::yield_now();
        }
        pool.threads = pool.joins.iter().map(|j| j.thread().clone()).collect();
        Ok(pool)
    }

    /// Returns the number of cores.
    pub fn cores(&self) -> usize {
        self.shared.cores
    }

    /// Returns the number of threads that run them, the caller's included.
    pub fn workers(&self) -> usize {
        self.shared.workers
    }

    /// Runs stage one on every core, then SyncAll, then stage two, and returns when all are done.
    /// `nanoseconds` estimates the work of all cores together; if waking the workers would take
    /// longer, the caller's thread runs every core, with the same result.
    ///
    /// # Errors
    /// If a stage panicked, which is a defect of this library; the device's tables are invalid
    /// then.
    pub fn launch(
        &mut self,
        nanoseconds: u64,
        one: Option<Stage<'_>>,
        two: Option<Stage<'_>>,
    ) -> Result<()> {
        let shared = &*self.shared;
        let asleep = shared.parked[1..].iter().any(|p| p.load(Ordering::Relaxed));
        if shared.workers == 1 || nanoseconds < MIN_SHARED_NANOSECONDS[usize::from(asleep)] {
            run_stages(shared, 0, 1, Job { one, two });
            return shared.check_panicked();
        }
        // SAFETY: only the lifetime changes. Workers do not use the references after they have
        // decremented `running`, and this function returns only after `running` is 0.
        let job = unsafe { core::mem::transmute::<Job<'_>, Job<'static>>(Job { one, two }) };
        shared.running.store(shared.workers - 1, Ordering::Relaxed);
        // SAFETY: no worker reads `job` here, because `&mut self` excludes another launch and the
        // last one ended with `running` 0.
        unsafe { *shared.job.get() = job };
        shared.launch.fetch_add(1, Ordering::SeqCst);
        for (worker, thread) in self.threads.iter().enumerate() {
            if shared.parked[worker + 1].load(Ordering::SeqCst) {
                thread.unpark();
            }
        }
        run_stages(shared, 0, shared.workers, Job { one, two });
        let mut spins = 0u32;
        while shared.running.load(Ordering::Acquire) != 0 {
            spins += 1;
            if spins < POLLS_BEFORE_YIELD { core::hint::spin_loop() } else { thread::yield_now() }
        }
        shared.check_panicked()
    }
}

impl Shared {
    fn check_panicked(&self) -> Result<()> {
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
            // A worker catches its panics, so the result is always `Ok`.
            let _ = join.join();
        }
    }
}

/// Runs launches on one worker until the pool stops.
fn run_worker(shared: &Shared, worker: usize, cpu: Option<usize>) {
    if let Some(cpu) = cpu {
        let mut set = CpuSet::new();
        set.set(cpu);
        // Pinning is for speed only; if a container forbids it, the worker runs unpinned.
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
            if spins < POLLS_BEFORE_PARK {
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
        // SAFETY: `job` was written before the launch number was raised, and is not written again
        // before this worker has decremented `running`.
        let job = unsafe { *shared.job.get() };
        run_stages(shared, worker, shared.workers, job);
        shared.running.fetch_sub(1, Ordering::Release);
    }
}

/// Runs one worker's cores of a launch with `workers` workers. It catches panics, so that the other
/// workers do not wait in the barrier for ever.
fn run_stages(shared: &Shared, worker: usize, workers: usize, job: Job<'_>) {
    let run = |stage: Option<Stage<'_>>| {
        let Some(stage) = stage else { return };
        let cores = (worker..shared.cores).step_by(workers);
        let result = catch_unwind(AssertUnwindSafe(|| cores.for_each(|core| stage(core, worker))));
        if result.is_err() {
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
