//! The threads that a worker pool starts: they enter a launch, run pieces, and leave.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::stages::InProgress;
use super::wait::Notify;
use crate::system::cpus::{PinnedCpu, allowed_cpus, restrict_thread};
use crate::system::fork::Birth;
use crate::system::{available_memory, reserve};
use crate::{Error, Result, ensure, invalid};

/// The threads of a [`WorkerPool`](super::worker_pool::WorkerPool).
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// Threads that run a launch, the caller's included: 1..=[`MAX_CORES`](crate::system::cpus::MAX_CORES).
    pub threads: usize,
    /// The CPUs that the started threads may use. Empty: those of the thread that makes the pool.
    pub cpus: Vec<usize>,
    /// Pins each started thread to one of `cpus` that no other pool of this process pins a thread
    /// to. If `cpus` is empty, the first CPU is left to the caller's thread.
    pub pin: bool,
    /// How long a thread polls before it sleeps: a started thread for the next launch, and any
    /// thread for the pieces of the others.
    pub spin: Duration,
}

impl WorkerConfig {
    /// Returns a configuration of `threads` threads that are not pinned and poll for 100
    /// microseconds, so that they stay awake between the layers of one forward pass.
    pub fn new(threads: usize) -> Self {
        Self { threads, cpus: Vec::new(), pin: false, spin: Duration::from_micros(100) }
    }
}

/// Bytes of the stack of a started thread.
const STACK: usize = 2 << 20;
/// Bytes of address space that a started thread takes beside its stack, at most: guard pages, and the
/// stack of signal handlers, without which Rust's standard library ends the process.
const BESIDE_STACK: usize = 256 << 10;

// The word of the door: the number of helpers inside the launch, whether helpers may enter, and
// above that the number of the launch.
const OPEN: u64 = 1 << 16;
const INSIDE: u64 = OPEN - 1;
const NUMBER: u32 = 17;

pub(super) struct Shared {
    /// The launch in progress, which is valid while the door is open or a helper is inside.
    launch: AtomicPtr<InProgress<'static>>,
    door: AtomicU64,
    stop: AtomicBool,
    spin: Duration,
    /// Helpers wait for a launch here.
    pub idle: Notify,
    /// The launching thread waits here until no helper is inside.
    left: Notify,
    started: AtomicUsize,
}

/// The started threads of a worker pool.
pub(super) struct Helpers {
    pub shared: Arc<Shared>,
    joins: Vec<JoinHandle<()>>,
    pinned: Vec<PinnedCpu>,
    birth: Birth,
}

impl Helpers {
    /// Starts `config.threads` - 1 threads.
    pub fn start(config: &WorkerConfig) -> Result<Self> {
        let count = config.threads - 1;
        let shared = Arc::new(Shared {
            launch: AtomicPtr::default(),
            door: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            spin: config.spin,
            idle: Notify::default(),
            left: Notify::default(),
            started: AtomicUsize::new(0),
        });
        available_memory::check_limits("stacks of worker threads", count * (STACK + BESIDE_STACK))?;
        let pinned = placed(config, count)?;
        let joins = reserve::with_capacity("worker threads", count)?;
        let mut helpers = Self { shared, joins, pinned, birth: Birth::now() };
        for worker in 1..=count {
            let shared = Arc::clone(&helpers.shared);
            let cpus = match helpers.pinned.get(worker - 1) {
                Some(pinned) => reserve::copied("worker threads", &[pinned.0])?,
                None => reserve::copied("worker threads", &config.cpus)?,
            };
            let join = thread::Builder::new()
                .name(format!("avsg-core-{worker}"))
                .stack_size(STACK)
                .spawn(move || help(&shared, worker, &cpus))
                .map_err(|error| {
                    let what = format!("worker thread {worker} of {count}");
                    let remedy = "ask for fewer cores, raise ulimit -u, or pass an executor";
                    Error::os("clone", what, error, remedy)
                })?;
            helpers.joins.push(join);
        }
        // A starting thread allocates memory, which must not happen during the first step.
        let shared = &helpers.shared;
        shared.left.wait(config.spin, || shared.started.load(Ordering::Acquire) == count);
        Ok(helpers)
    }

    /// Lets every helper that comes run a launch until [`Self::close`].
    ///
    /// # Safety
    /// No other launch is open. This one stays where it is until the call of [`Self::close`] has returned, and
    /// so does what its pieces use.
    pub unsafe fn open(&self, launch: &InProgress<'_>) {
        let shared = &*self.shared;
        // Helpers read the pointer after they have come in by the door, which opens below.
        shared.launch.store((&raw const *launch).cast_mut().cast(), Ordering::Relaxed);
        let number = (shared.door.load(Ordering::Relaxed) >> NUMBER) + 1;
        shared.door.store(number << NUMBER | OPEN, Ordering::Release);
        shared.idle.notify();
    }

    /// Lets no other helper in, and waits until none is inside.
    pub fn close(&self) {
        let shared = &*self.shared;
        shared.door.fetch_and(!OPEN, Ordering::AcqRel);
        shared.left.wait(shared.spin, || shared.door.load(Ordering::Acquire) & INSIDE == 0);
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        if self.birth.is_past() {
            // A forked child has none of these threads, and its C library may have reused their
            // memory.
            mem::take(&mut self.joins).into_iter().for_each(mem::forget);
            return;
        }
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.idle.notify();
        for join in self.joins.drain(..) {
            // A helper catches the panics of pieces, so the result is always `Ok`.
            let _ = join.join();
        }
    }
}

/// Takes a CPU for each thread that is to be pinned, and checks the CPUs of a configuration.
fn placed(config: &WorkerConfig, count: usize) -> Result<Vec<PinnedCpu>> {
    let allowed = allowed_cpus();
    if let Some(cpu) = config.cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        return Err(invalid!("cpus" is cpu, but "this thread may use {allowed:?}";
            "pass some of those"));
    }
    if !config.pin {
        return Ok(Vec::new());
    }
    let cpus = match config.cpus.as_slice() {
        [] => allowed.get(1..).unwrap_or_default(),
        some => some,
    };
    let free = cpus.iter().filter_map(|&cpu| PinnedCpu::take(cpu)).take(count);
    let pinned = reserve::collected("worker threads", count, free)?;
    ensure!(pinned.len() >= count, "worker threads besides the caller's" is count, but
        "{} of the CPUs {cpus:?} are free to pin a thread to", pinned.len();
        "pass other CPUs, share one worker pool among engines, or do not pin");
    Ok(pinned)
}

/// Enters every launch that it sees, until the pool stops.
fn help(shared: &Shared, worker: usize, cpus: &[usize]) {
    if !cpus.is_empty() {
        // `placed` has checked the CPUs. If they were taken from the process since, the thread runs elsewhere.
        let _ = restrict_thread(cpus.iter().copied());
    }
    shared.started.fetch_add(1, Ordering::Release);
    shared.left.notify();
    let mut seen = 0;
    let enterable = |door: u64, seen| door & OPEN != 0 && door >> NUMBER != seen;
    loop {
        shared.idle.wait(shared.spin, || {
            shared.stop.load(Ordering::Relaxed)
                || enterable(shared.door.load(Ordering::Relaxed), seen)
        });
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        let enter = |door| enterable(door, seen).then_some(door + 1);
        let Ok(door) = shared.door.fetch_update(success, failure, enter) else { continue };
        seen = door >> NUMBER;
        // SAFETY: this helper is inside, so the pointer is that of the launch in progress, which stays where it is until
        // `close` has seen that no helper is inside (`open`).
        let launch = unsafe { &*shared.launch.load(Ordering::Relaxed) };
        launch.run(worker);
        let before = shared.door.fetch_sub(1, Ordering::Release);
        if before & OPEN == 0 && before & INSIDE == 1 {
            shared.left.notify();
        }
    }
}
