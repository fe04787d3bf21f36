//! The workers of the device "cpu".

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use crate::handle::{self, Object};
use crate::sized;
use crate::status::{Result, avsg_status, check_reserved, ensure, enter};
use avsg::cpu::worker_pool::{Executor, WorkerConfig, WorkerPool};

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
        let config = contract!(sized::read(config)?);
        let cpus = contract!(sized::array("cpus", config.cpus, config.cpu_count)?);
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
