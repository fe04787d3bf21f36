//! The workers of the device "cpu".

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use crate::boundary::enter;
use crate::handle::Object;
use crate::status::{Result, avsg_status, check_reserved, choice, ensure};
use crate::{boundary, handle};
use avsg::copy::Copier;
use avsg::cpu::worker_pool::{Executor, WorkerConfig, WorkerPool};
use avsg::device::params::{Lifetime, Params};
use avsg::engine::MachineChoice;

/// The threads that run the launches of one or several engines on "cpu".
pub struct avsg_workers;

impl Object for WorkerPool {
    type C = avsg_workers;
    const KIND: u64 = 4;
    const NAME: &'static str = "workers";
    type Fixed = ();

    fn fixed(&self) {}
}

/// A task of the library, which an executor calls with `data` and an index.
pub type avsg_task = Option<unsafe extern "C" fn(data: *mut c_void, index: usize)>;

/// A function of the caller that calls task(data, i) once for each i below `count`, on any threads
/// and at the same time where it can, and returns when all these calls have returned. One thread at
/// a time calls it. A call that it leaves out costs only speed. No exception may leave it.
pub type avsg_executor = Option<
    unsafe extern "C" fn(user: *mut c_void, task: avsg_task, data: *mut c_void, count: usize),
>;

/// The configuration of workers. `size` and `threads` must be set.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_workers_config {
    /// sizeof(avsg_workers_config).
    pub size: usize,
    /// Threads that run a launch, the caller's included: 1 to 1024. With an executor, the tasks
    /// that it gets.
    pub threads: u32,
    /// 1 pins each started thread to one of `cpus`, to which no other workers of this process are
    /// pinned (AVSG_INVALID if too few are left); with no `cpus`, to one of the thread's that calls,
    /// of which the first is left to the caller. 0 leaves the choice to the system.
    pub pin: u32,
    /// The CPUs that started threads may use; NULL for those of the thread that calls.
    pub cpus: *const i32,
    /// The number of `cpus`.
    pub cpu_count: usize,
    /// Microseconds that a thread polls before it sleeps: a started thread for the next launch, and
    /// any thread for the pieces of the others. 0 selects 100, and -1 none.
    pub spin_us: i32,
    /// Must be 0.
    pub reserved: u32,
    /// The caller's threads. NULL starts threads.
    pub executor: avsg_executor,
    /// The first argument of `executor`, which is called on the threads of the engines' callers.
    pub user: *mut c_void,
}

/// The caller's executor.
struct CallerExecutor {
    executor: unsafe extern "C" fn(*mut c_void, avsg_task, *mut c_void, usize),
    user: *mut c_void,
}

// SAFETY: the pointer is only passed to the executor, which the threads of engines' callers call
// (`avsg_workers_config`).
unsafe impl Send for CallerExecutor {}
// SAFETY: as for Send.
unsafe impl Sync for CallerExecutor {}

impl Executor for CallerExecutor {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        let data = (&raw const task).cast_mut().cast();
        // SAFETY: `data` is the address of `task`, and the executor calls `call_task` with it only until it
        // returns (`avsg_executor`).
        unsafe { (self.executor)(self.user, Some(call_task), data, count) };
    }
}

/// Calls the task at `data`.
///
/// # Safety
/// `data` is the address of a task that lives until the call has returned.
unsafe extern "C" fn call_task(data: *mut c_void, index: usize) {
    let task = contract!(*data.cast::<&(dyn Fn(usize) + Sync)>());
    task(index);
}

/// Makes workers, for engines whose configuration names them. Workers that start threads take no
/// more than `threads` - 1. Several engines may share workers: a launch that finds them in use runs
/// on its caller's thread alone, with the same result. An executor is called until the workers' handle and
/// every engine with them are destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_workers_create(
    config: *const avsg_workers_config,
    workers: *mut *mut avsg_workers,
) -> avsg_status {
    let make = || {
        let config = contract!(boundary::read(config)?);
        let cpus = contract!(boundary::array("cpus", config.cpus, config.cpu_count)?);
        let own = worker_config(&config, cpus)?;
        let Some(executor) = config.executor else { return Ok(WorkerPool::new(&own)?) };
        let foreign = Arc::new(CallerExecutor { executor, user: config.user });
        Ok(WorkerPool::on_executor(&own, foreign)?)
    };
    contract!(handle::give(workers, make))
}

fn worker_config(config: &avsg_workers_config, cpus: &[i32]) -> Result<WorkerConfig> {
    let (pin, n, most) = (config.pin, cpus.len(), avsg::system::cpus::MAX_CORES);
    ensure!(pin <= 1, "pin is {pin}, but it must be 0 or 1; pass 0 to pin no thread");
    check_reserved(config.reserved)?;
    ensure!(n <= most, "cpu_count is {n}, but it must be 0..={most}; pass each CPU once");
    let mut own =
        WorkerConfig { pin: config.pin == 1, ..WorkerConfig::new(config.threads as usize) };
    for &cpu in cpus {
        ensure!(cpu >= 0, "cpus has {cpu}, but CPUs count from 0; pass CPU numbers");
        own.cpus.push(cpu as usize);
    }
    let us = config.spin_us;
    ensure!(us >= -1, "spin_us is {us}, but it must be at least -1; 0 is the default");
    if us != 0 {
        own.spin = Duration::from_micros(us.max(0) as u64);
    }
    Ok(own)
}

/// Destroys the handle of workers. The threads end when the last engine with them is destroyed.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_workers_destroy(workers: *mut avsg_workers) -> avsg_status {
    enter(|| handle::destroy::<WorkerPool>(workers))
}

/// The table that maps ids to slots.
#[repr(C)]
pub enum avsg_table {
    /// Several links per slot, with the least valuable slots as victims. Hit rates are those of
    /// exact LRU or better.
    AVSG_TABLE_WIDE = 0,
    /// The paper's table, bit for bit.
    AVSG_TABLE_PAPER = 1,
}

/// The rule that chooses the slots which misses replace.
#[repr(C)]
pub enum avsg_lifetime {
    /// AVSG_LIFETIME_LEARNED for a wide table of at least 2 K slots, and with 2 links per slot fewer than
    /// 4 K, else AVSG_LIFETIME_CONSTANT.
    AVSG_LIFETIME_AUTO = 0,
    /// The constant `life`, which evicts the least recently used slot.
    AVSG_LIFETIME_CONSTANT = 1,
    /// The slots that are least likely to be used soon, which each request learns from its own
    /// selections: by the time since their last use and the number of uses. Only for a wide table.
    AVSG_LIFETIME_LEARNED = 2,
}

/// The vector instructions that the device "cpu" runs its kernels with.
#[repr(C)]
pub enum avsg_machine {
    /// The fastest of the CPU, as the first engine of the process measures it.
    AVSG_MACHINE_AUTO = 0,
    /// AVX2.
    AVSG_MACHINE_AVX2 = 1,
    /// AVX-512.
    AVSG_MACHINE_AVX512 = 2,
    /// NEON.
    AVSG_MACHINE_NEON = 3,
}

/// How the device "cpu" copies rows.
#[repr(C)]
pub enum avsg_copier {
    /// AVSG_COPIER_PREFETCH for rows of fewer than 1024 bytes, or 4096 on CPUs with AVX-512 or NEON, else
    /// AVSG_COPIER_STREAM, both 4 rows ahead.
    AVSG_COPIER_AUTO = 0,
    /// One memcpy for each row.
    AVSG_COPIER_PLAIN = 1,
    /// Vector copies with prefetch of both ends of a later row.
    AVSG_COPIER_PREFETCH = 2,
    /// Non-temporal stores with prefetch of the source of a later row.
    AVSG_COPIER_STREAM = 3,
}

/// How an engine works (`avsg_engine_config.tuning`): which slots misses replace, and what "cpu" would
/// otherwise measure. No choice changes the rows that attention reads. A link is an entry of a table, which
/// can point to a slot; an id is searched in up to R + 1 links, where R is 7 with 2 links per slot, and else 3.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_tuning {
    /// sizeof(avsg_tuning).
    pub size: usize,
    /// An `avsg_table`.
    pub table: i32,
    /// An `avsg_lifetime`.
    pub lifetime: i32,
    /// The constant lifetime in decode steps: 0 to 127 (1 to 127 in a paper table). 0 unless
    /// `lifetime` is AVSG_LIFETIME_CONSTANT.
    pub life: i32,
    /// Links per slot: 1, 2 or 4. 0 selects 1 for a paper table, and for a wide one 4 on "cpu" and 2 on
    /// an Ascend device, whose fast memory 4 do not fit with K = 2048 and S = 8192.
    pub spread: u32,
    /// An `avsg_machine`, used by "cpu".
    pub machine: i32,
    /// An `avsg_copier`, used by "cpu".
    pub copier: i32,
    /// The distance of the later row that AVSG_COPIER_PREFETCH and AVSG_COPIER_STREAM prefetch, in
    /// rows: 0 to 64; 0 prefetches nothing.
    pub copier_ahead: u32,
    /// Kernels that `avsg_engine_step` launches on an Ascend device. 1: a single kernel, which
    /// starts when all its cores are idle, and whose cores wait for each other between the stages.
    /// 2: one per stage, so that other streams can compute beside them. 0: one with a NULL stream,
    /// and two in a stream.
    pub launches: u32,
}

impl avsg_tuning {
    /// Returns the geometry, which the engine checks. A vector core has little fast memory.
    pub(crate) fn params(
        &self,
        [k, tokens, slots]: [u32; 3],
        on_vector_core: bool,
    ) -> Result<Params> {
        let compact = self.spread == 2 || (self.spread == 0 && on_vector_core);
        let wide = if compact { Params::compact } else { Params::wide };
        let tables = [wide(k, tokens, slots), Params::paper(k, tokens, slots)];
        let defaults = choice("table", self.table, &tables)?;
        // A value that the lifetime does not use would be ignored without a word.
        let (life, lifetime) = (self.life, self.lifetime);
        ensure!(
            life == 0 || lifetime == 1,
            "life is {life}, but lifetime is {lifetime}, which does not use it; set lifetime to \
             AVSG_LIFETIME_CONSTANT, or life to 0"
        );
        let fits = i8::try_from(life).is_ok();
        ensure!(fits, "life is {life}, but it must be 0..=127; 127 is plain LRU");
        let lifetimes = [defaults.lifetime, Lifetime::Constant(life as i8), Lifetime::Learned];
        let lifetime = choice("lifetime", lifetime, &lifetimes)?;
        let spread = if self.spread == 0 { defaults.spread } else { self.spread };
        Ok(Params { lifetime, spread, ..defaults })
    }

    /// Returns the method that copies rows; None leaves it to the engine.
    pub(crate) fn copier(&self) -> Result<Option<Copier>> {
        let ahead = self.copier_ahead as usize;
        ensure!(ahead <= 64, "copier_ahead is {ahead}, but it must be 0..=64; 1 or 4 is usual");
        let copiers = [Copier::Plain, Copier::Prefetch { ahead }, Copier::Stream { ahead }];
        let [plain, prefetch, stream] = copiers.map(Some);
        choice("copier", self.copier, &[None, plain, prefetch, stream])
    }

    /// Returns the vector instructions.
    pub(crate) fn machine(&self) -> Result<MachineChoice> {
        use MachineChoice::{Auto, Avx2, Avx512, Neon};
        choice("machine", self.machine, &[Auto, Avx2, Avx512, Neon])
    }

    /// Returns whether a step on an Ascend device is one kernel; None leaves it to the engine.
    pub(crate) fn one_launch(&self) -> Result<Option<bool>> {
        let launches = i32::try_from(self.launches).unwrap_or(i32::MAX);
        choice("launches", launches, &[None, Some(true), Some(false)])
    }
}
