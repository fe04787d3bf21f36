//! The engine: the tables, the device buffer and the host pool of one device, and the calls of a
//! decode step.
//!
//! ```text
//! plan(batch)  -> slots, miss lists            once per indexer, into its tables
//! transfer(plan, layer, fresh)                 per layer: misses host to device; or begin and wait
//! append(batch, layer, fresh)                  per layer: this step's rows to the host pool
//! step = plan + SyncAll + transfer, one launch
//! ```
//! A state is one request's tables, one per indexer, and its S slots in every layer. Two requests of one batch must
//! not name one state.

mod check;
mod discard;
mod order;
mod queue;
mod stage_two;
mod state;
mod stats;
mod step;

use std::iter;
use std::sync::Arc;

use avsg_device::stage_two::share_start;

use crate::Result;
use crate::ascend::{Ascend, AscendOptions, RegisteredPool};
use crate::backend::Device;
use crate::buffer::DeviceBuffer;
use crate::cpu::Cpu;
use crate::cpu::worker_pool::{WorkerConfig, WorkerPool};
use crate::plan::{Dropped, Plan};
use crate::pool::{HostPool, PoolConfig, Start};
use crate::resources::Resources;
use crate::system::cpus::allowed_cpu_count;
use crate::system::reserve;
use order::TransferOrder;
use stats::Counters;

pub use crate::backend::CpuChoices;
pub use crate::call::{Batch, BatchOf, MAX_REQUESTS};
pub use crate::device_arrays::{DeviceArray, DeviceBatch, DevicePlan, RawStream};
pub use crate::indexers::Indexers;
pub use crate::resources::{Config, MAX_UNDER_WAY, MachineChoice};
pub use stats::{Stats, StatsReader};

/// The operator on one device. [`Engine::new`] makes one on the CPU and [`Engine::on_ascend`] one
/// on an Ascend device.
///
/// One thread may call an engine at a time. A step on the CPU allocates nothing and takes no lock; it
/// sleeps only while another worker runs a piece of it, or while rows of a pool in a file are read. In a
/// forked child, the calls of the parent's engines and pools are
/// [`Error::Forked`](crate::Error::Forked). A step on an Ascend device allocates only if the block tables
/// or the fresh rows are larger than in all steps before.
pub struct Engine {
    // Dropped before the resources, because a device unregisters the pool's chunks before they are
    // unmapped.
    device: Box<dyn Device>,
    resources: Arc<Resources>,
    /// One flag per state, for the states that a call names.
    named: Box<[bool]>,
    order: TransferOrder,
    /// A bit for each place at which a transfer is under way.
    under_way: u64,
    counters: Counters,
    dropped: Dropped<Plan>,
}

impl Engine {
    /// Makes an engine on the CPU: allocates the slots and the tables, and starts the worker
    /// threads. The pool sets the number of layers and the row format. Several engines may share a
    /// pool (pass clones of an `Arc`).
    ///
    /// # Errors
    /// If the configuration is invalid, too little memory is available, or a thread cannot be
    /// started.
    pub fn new(config: Config, pool: impl Into<Arc<HostPool>>) -> Result<Self> {
        let pool = pool.into();
        // No thread is started for a configuration that is refused.
        Cpu::sizes(&config, &pool.geometry, iter::empty(), 1)?;
        let workers = WorkerPool::new(&WorkerConfig::new(Self::own_threads(&config)))?;
        Self::with_workers(config, pool, &workers)
    }

    /// Makes an engine on the CPU whose launches run on `workers`, which other engines may share.
    /// It starts no thread, except that threads touch new memory of 512 MiB and more.
    ///
    /// # Errors
    /// If the configuration is invalid, or too little memory is available.
    pub fn with_workers(
        config: Config,
        pool: impl Into<Arc<HostPool>>,
        workers: &WorkerPool,
    ) -> Result<Self> {
        let (resources, device) = Cpu::new(config, pool.into(), workers)?;
        Self::from_parts(resources, Box::new(device))
    }

    /// Makes an engine on an Ascend device. Its number of cores is at most the device's number of
    /// vector cores.
    ///
    /// # Errors
    /// As for [`Self::new`], or if the device has too little memory, a kernel cannot be loaded, or
    /// device kernels do not support the geometry.
    pub fn on_ascend(
        config: Config,
        pool: Arc<RegisteredPool>,
        options: &AscendOptions,
    ) -> Result<Self> {
        let (resources, device) = Ascend::new(config, pool, options)?;
        Self::from_parts(resources, Box::new(device))
    }

    fn from_parts(resources: Arc<Resources>, device: Box<dyn Device>) -> Result<Self> {
        let (states, indexers) = (resources.config.states, resources.config.indexers.count());
        let order = TransferOrder::new(states, indexers, resources.pool.layers())?;
        let named = reserve::filled("states", states, false)?.into();
        let slots = resources.config.params.slots as usize;
        let counters = Counters::new(indexers, states, slots)?;
        let dropped = Dropped::default();
        Ok(Self { named, order, under_way: 0, counters, dropped, device, resources })
    }

    /// Returns the bytes of memory that [`Self::with_workers`] allocates with `workers`, or [`Self::new`] without, on
    /// a pool of this configuration: those of the slots, and those of the tables of all indexers, of the working
    /// columns and, for a pool in a file, of the bounce buffer. The checks are those of [`Self::new`], except that the
    /// memory of the pool and what the machine has available are not known here. For a pool in a file the block of its
    /// file system is looked up.
    ///
    /// # Errors
    /// If the configuration is invalid, or the sizes overflow.
    pub fn bytes_needed(
        config: &Config,
        pool: &PoolConfig,
        workers: Option<&WorkerPool>,
    ) -> Result<(usize, usize)> {
        let threads = workers.map_or(Self::own_threads(config), WorkerPool::threads);
        let rows = pool.grids(Start::in_process);
        let sizes = Cpu::sizes(config, &pool.geometry()?, rows, threads)?;
        Ok((sizes.slots, sizes.tables + sizes.work + sizes.reads))
    }

    /// Returns the number of threads of an engine with workers of its own: one for each core, but not more than CPUs.
    fn own_threads(config: &Config) -> usize {
        config.cores.min(allowed_cpu_count())
    }

    /// Returns the bytes of host memory that [`Self::new_plan`] allocates for an engine on the CPU: those of
    /// [`Plan::bytes_needed`] and, for a pool in a file, what finds the records of misses and the bounce
    /// buffer of layers that share records.
    ///
    /// # Errors
    /// As for [`Self::new_plan`], but for memory, or if the pool's configuration is invalid.
    pub fn plan_bytes(
        config: &Config,
        pool: &PoolConfig,
        max_tokens: usize,
        max_requests: usize,
    ) -> Result<usize> {
        let arrays = Plan::bytes_needed(&config.params, max_tokens, max_requests)?;
        let reads = Cpu::plan_bytes(&pool.geometry()?, &config.params, max_tokens)?;
        Ok(arrays.saturating_add(reads))
    }

    /// Returns the configuration. On an Ascend device, `cores` is at most the number of its vector
    /// cores.
    pub fn config(&self) -> &Config {
        &self.resources.config
    }

    /// Returns the device's name: "cpu", "ascend" or "ascend-sim".
    pub fn device(&self) -> &'static str {
        self.device.name()
    }

    /// Returns how a CPU runs the kernels and copies rows; `None` on Ascend devices, which do both themselves.
    pub fn cpu(&self) -> Option<CpuChoices> {
        self.device.cpu()
    }

    /// Returns the host pool.
    pub fn pool(&self) -> &HostPool {
        &self.resources.pool
    }

    /// Returns the device buffer. On an Ascend device its addresses are device addresses.
    pub fn buffer(&self) -> &Arc<DeviceBuffer> {
        &self.resources.buffer
    }

    /// Returns the counters and times of the calls so far.
    pub fn stats(&self) -> Stats {
        self.stats_reader().stats()
    }

    /// Returns what reads the counters from any thread, also during calls and after the engine's end.
    pub fn stats_reader(&self) -> StatsReader {
        StatsReader(Arc::clone(&self.counters.live))
    }

    /// Allocates a plan for batches of at most `max_tokens` tokens and `max_requests`
    /// requests. Several plans of one engine may be in use at once.
    ///
    /// # Errors
    /// If a number is 0 or above 2^20, or the host or the device has too little memory.
    pub fn new_plan(&self, max_tokens: usize, max_requests: usize) -> Result<Plan> {
        self.resources.birth.check("engine")?;
        let (id, config) = (self.resources.id, &self.resources.config);
        let (params, from) = (&config.params, (config.allocator.as_ref(), &self.dropped));
        let mut plan = Plan::with_capacity(id, params, max_tokens, max_requests, from)?;
        plan.layers = reserve::with_capacity("plan", self.resources.pool.layers())?;
        self.device.prepare(&mut plan)?;
        Ok(plan)
    }

    /// Returns the offsets in `plan.misses(request)` where each core's share begins, then the end
    /// of the last share: cores + 1 offsets.
    ///
    /// # Panics
    /// If `request` is not below the number of requests.
    pub fn cuts(&self, plan: &Plan, request: usize) -> impl Iterator<Item = usize> {
        let cores = self.resources.config.cores;
        let len = |r| plan.misses(r).id.len();
        let (before, mine): (usize, usize) = ((0..request).map(len).sum(), len(request));
        let total = plan.total_misses();
        (0..=cores).map(move |c| share_start(total, c, cores).clamp(before, before + mine) - before)
    }

    /// Reads the table of one state and indexer as int32 words, for snapshots and tests: the header, ids,
    /// lifetimes, links and what learned lifetimes keep ([`avsg_device::memory`]).
    ///
    /// # Errors
    /// If there is no such indexer or state, or the copy from the device fails.
    pub fn read_table(&mut self, indexer: usize, state: usize) -> Result<&[i32]> {
        let table = self.start_on(indexer, state)?;
        self.device.read_table(table)
    }

    /// Waits for the device and destroys the engine.
    ///
    /// # Errors
    /// The oldest error of the releases. Everything is released in any case.
    pub fn close(self) -> Result<()> {
        let Self { device, resources, .. } = self;
        drop(resources);
        device.close()
    }
}
