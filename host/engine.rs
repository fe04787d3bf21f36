//! The engine: tables, device buffer and host pool of one device, and the calls of a decode step.
//!
//! ```text
//! plan(batch)  -> slots, miss lists            once per indexer
//! transfer(plan, layer, fresh)                 per layer: misses host to device
//! append(batch, layer, fresh)                  per layer: this step's rows to the host pool
//! step = plan + SyncAll + transfer, one launch
//! ```
//! A request's state is a table and S slots. Two requests of one batch must not name one state.

mod check;
pub(crate) mod core;
mod cpu;
mod enqueue;
mod order;

use std::sync::Arc;

use avsg_device::params::Params;
use avsg_device::stage_two::{Strategy, cut};

use crate::acl::owned::Context;
use crate::buffer::{BufferConfig, DeviceBuffer};
use crate::copy::Copier;
use crate::launch::acl::{Ascend, AscendOptions, RegisteredPool};
use crate::machine::{Choice, Machine};
use crate::plan::Plan;
use crate::pool::{HostPool, Role};
use crate::{Error, Result};
use core::Core;
use cpu::Cpu;
use order::Order;

pub use enqueue::{DeviceBatch, DeviceFresh, DevicePlan};

/// What an engine is to be.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Geometry and rules of every table.
    pub params: Params,
    /// Request states: the most requests that are resident at once.
    pub states: usize,
    /// Cores of the device; stage two is cut for as many.
    pub cores: usize,
    /// Which vector machine.
    pub machine: Choice,
    /// How misses are spread over cores.
    pub strategy: Strategy,
}

impl Config {
    /// All CPUs of this process, the fastest machine, balanced.
    pub fn new(params: Params, states: usize) -> Self {
        let cores = crate::launch::cpu::allowed_cpus().len().max(1);
        Self { params, states, cores, machine: Choice::Auto, strategy: Strategy::Balanced }
    }
}

/// One decode step's batch. Arrays are per request unless they say otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Selected ids, row by row (a row is a token of a request); negative is padding.
    pub ids: &'a [i32],
    /// Words from row to row of `ids`, at least `k`.
    pub ids_stride: usize,
    /// Ids per row, at most the geometry's K.
    pub k: usize,
    /// First row of each request, and the number of rows at the end: requests + 1 entries, from 0.
    pub cu_q: &'a [i32],
    /// State of each request, -1 for a padded request: its slots are -1 and it copies nothing.
    pub state: &'a [i32],
    /// Generation: a value other than the state's last one starts cold.
    pub generation: &'a [i32],
    /// Tokens whose KV was final before this step; -1: no invalidation, no fresh rows.
    pub stable_len: &'a [i32],
    /// Sequence length with this step's tokens: ids must be below it.
    pub seq_len: &'a [i32],
    /// Host blocks of each request, `block_stride` entries each; empty when the geometry's page is 0.
    pub block_table: &'a [i32],
    /// Entries of one request in `block_table`.
    pub block_stride: usize,
}

/// The rows of this step, which exist only on the device: per segment, row r of the batch at
/// r · stride.
#[derive(Clone, Copy, Debug)]
pub struct Fresh<'a> {
    /// One slice per segment.
    pub segments: &'a [&'a [u8]],
}

/// The calls of a decode step on some device. The engine has checked what they are given.
pub(crate) trait Device: Send + Sync {
    /// Stage One.
    fn plan(&mut self, core: &Core, batch: &Batch<'_>, plan: &mut Plan) -> Result<()>;

    /// Stage Two of one layer.
    fn transfer(
        &mut self,
        core: &Core,
        plan: &mut Plan,
        layer: usize,
        fresh: Option<&Fresh<'_>>,
    ) -> Result<()>;

    /// Both.
    fn step(
        &mut self,
        core: &Core,
        batch: &Batch<'_>,
        plan: &mut Plan,
        layer: usize,
        fresh: Option<&Fresh<'_>>,
    ) -> Result<()>;

    /// Fresh rows to the host pool. Every one has a place there.
    fn append(
        &mut self,
        core: &Core,
        batch: &Batch<'_>,
        layer: usize,
        fresh: &Fresh<'_>,
    ) -> Result<()>;

    /// What a new plan needs of the device.
    fn prepare(&self, _plan: &mut Plan) -> Result<()> {
        Ok(())
    }

    /// One table's words.
    fn read_table(&mut self, core: &Core, state: usize) -> Result<&[i32]>;

    /// A number that is another one for the next plan if a failure has left every table cold.
    fn epoch(&self) -> u64 {
        0
    }

    /// What it is called.
    fn name(&self) -> &'static str {
        "cpu"
    }

    /// The vector machine, where a CPU plays the cores.
    fn machine(&self) -> Option<Machine> {
        None
    }

    /// How rows are copied, where a CPU does it.
    fn copier(&self) -> Option<Copier> {
        None
    }

    /// The Ascend device, if it is one.
    fn ascend(&mut self) -> Option<&mut Ascend> {
        None
    }
}

/// The operator on one device.
///
/// One thread calls it at a time. A step allocates nothing and takes no blocking lock.
pub struct Engine {
    // Before the core: what a device registered of the pool goes first.
    device: Box<dyn Device>,
    core: Core,
    /// States that the batch under check has named.
    named: Box<[bool]>,
    order: Order,
}

impl Engine {
    /// Device memory that an engine takes, in bytes: (slots, tables and working columns).
    ///
    /// # Errors
    /// If the geometry is not valid.
    pub fn bytes_needed(config: &Config, buffer: &BufferConfig) -> Result<(usize, usize)> {
        Cpu::bytes_needed(config, buffer)
    }

    /// Takes all memory and starts the cores. The engine's layers and row format are the pool's,
    /// which several engines may share (pass clones of an `Arc`).
    ///
    /// # Errors
    /// If the geometry breaks a rule, memory is short, or a core cannot be started.
    pub fn new(config: Config, pool: impl Into<Arc<HostPool>>) -> Result<Self> {
        let (core, device) = Cpu::new(config, pool.into())?;
        Ok(Self::with(core, Box::new(device)))
    }

    fn with(core: Core, device: Box<dyn Device>) -> Self {
        let states = core.config.states;
        let order = Order::new(states, core.pool.layers());
        Self { named: vec![false; states].into(), order, device, core }
    }

    /// The same on an Ascend device. It has as many cores as the device at most.
    ///
    /// # Errors
    /// As for [`Self::new`]; or if the device lacks memory, a kernel cannot be loaded, or the
    /// geometry is none that a device kernel takes.
    pub fn on_ascend(
        config: Config,
        pool: RegisteredPool,
        options: &AscendOptions,
    ) -> Result<Self> {
        let (core, device) = Ascend::new(config, pool, options)?;
        Ok(Self::with(core, Box::new(device)))
    }

    /// What it was made from; on a device, with the cores that it really has.
    pub fn config(&self) -> &Config {
        &self.core.config
    }

    /// The device: "cpu", "ascend" or "ascend-sim".
    pub fn device(&self) -> &'static str {
        self.device.name()
    }

    /// The machine that runs its kernels; none on a device.
    pub fn machine(&self) -> Option<Machine> {
        self.device.machine()
    }

    /// How it copies rows; none on a device, whose cores do.
    pub fn copier(&self) -> Option<Copier> {
        self.device.copier()
    }

    /// Its host pool.
    pub fn pool(&self) -> &HostPool {
        &self.core.pool
    }

    /// Its device buffer. On a device its addresses are the device's.
    pub fn buffer(&self) -> &DeviceBuffer {
        &self.core.buffer
    }

    /// A plan for batches of at most so many rows (tokens) and requests. Several may be in flight.
    ///
    /// # Errors
    /// If a number is 0 or above 2^20, or the device has no memory for it.
    pub fn new_plan(&self, max_rows: usize, max_requests: usize) -> Result<Plan> {
        let k = self.core.config.params.k as usize;
        let mut plan = Plan::with_capacity(self.core.id, k, max_rows, max_requests)?;
        self.device.prepare(&mut plan)?;
        Ok(plan)
    }

    /// Whether a plan is one of this engine's.
    pub(crate) fn owns(&self, plan: &Plan) -> bool {
        plan.engine == self.core.id
    }

    /// Stage One: slots and miss lists of a batch.
    ///
    /// # Errors
    /// If the batch or the plan breaks a rule; nothing has changed then. If a device fails, the
    /// next plan starts every table cold.
    pub fn plan(&mut self, batch: &Batch<'_>, plan: &mut Plan) -> Result<()> {
        check::batch(&self.core, &mut self.named, batch, plan)?;
        self.order.begin(self.device.epoch());
        self.device.plan(&self.core, batch, plan)?;
        self.order.planned(batch, plan);
        Ok(())
    }

    /// Stage Two: copies a plan's misses into one layer's slots. Every plan that missed a row goes to
    /// every layer that is read; for one layer and state, in the order in which they were planned.
    /// Beyond that the order is free: the next batch may be planned, and transferred to the layers that
    /// are ready, while others wait for this one; a plan may go to one layer twice.
    ///
    /// # Errors
    /// If the layer does not exist, the plan is another engine's, it has fresh rows and `fresh` does not
    /// hold them, or it comes out of order: the layer has the rows of a newer plan of some state, or
    /// lacks those of an older one. Nothing was copied then.
    pub fn transfer(
        &mut self,
        plan: &mut Plan,
        layer: usize,
        fresh: Option<&Fresh<'_>>,
    ) -> Result<()> {
        check::plan(&self.core, plan)?;
        check::fresh(&self.core, layer, plan.rows(), fresh, plan.fresh)?;
        self.order.check(plan, layer)?;
        self.device.transfer(&self.core, plan, layer, fresh)?;
        self.order.transferred(plan, layer);
        Ok(())
    }

    /// Plan and transfer in one launch, with SyncAll between.
    ///
    /// # Errors
    /// As [`Self::plan`] and [`Self::transfer`]. Fresh rows must be there whenever some
    /// `stable_len` is not -1.
    pub fn step(
        &mut self,
        batch: &Batch<'_>,
        plan: &mut Plan,
        layer: usize,
        fresh: Option<&Fresh<'_>>,
    ) -> Result<()> {
        check::batch(&self.core, &mut self.named, batch, plan)?;
        let rows = batch.cu_q.last().map_or(0, |&n| n as usize);
        let may_need_fresh = batch.stable_len.iter().any(|&s| s >= 0);
        check::fresh(&self.core, layer, rows, fresh, may_need_fresh)?;
        self.order.begin(self.device.epoch());
        self.order.check_next(batch, layer)?;
        self.device.step(&self.core, batch, plan, layer, fresh)?;
        self.order.planned(batch, plan);
        self.order.transferred(plan, layer);
        Ok(())
    }

    /// Writes this step's rows, which were only fresh until now, to one layer of the host pool:
    /// token g of a request becomes the row of id `stable_len` + g. Call it when the layer's gather
    /// is done and before the next step plans. Requests without `stable_len` or state are passed over,
    /// and so are rows whose id is not below `seq_len`.
    ///
    /// # Errors
    /// If some row has no place in the pool, or this process may not write it; nothing was written
    /// then. If a device fails, rows may be missing: call it again before anything else.
    pub fn append(&mut self, batch: &Batch<'_>, layer: usize, fresh: &Fresh<'_>) -> Result<()> {
        let rows = batch.cu_q.last().map_or(0, |&n| n.max(0) as usize);
        check::shape(&self.core, &mut self.named, batch)?;
        check::fresh(&self.core, layer, rows, Some(fresh), true)?;
        self.refuse_reader()?;
        self.core.check_places(batch)?;
        self.device.append(&self.core, batch, layer, fresh)
    }

    fn refuse_reader(&self) -> Result<()> {
        if self.core.pool.role() == Role::Reader {
            let limit = "a reader's mapping is read only";
            return Err(Error::invalid(
                "pool role",
                "reader",
                limit,
                "append in the writer process",
            ));
        }
        Ok(())
    }

    /// Where each core's share of a request's miss list begins, and its end: cores + 1 offsets into
    /// `plan.misses(request)`, for the balanced strategy.
    ///
    /// # Panics
    /// If there is no such request.
    pub fn cuts(&self, plan: &Plan, request: usize) -> impl Iterator<Item = usize> {
        let cores = self.core.config.cores;
        let len = |r| plan.misses(r).id.len();
        let (before, mine): (usize, usize) = ((0..request).map(len).sum(), len(request));
        let total = plan.total_misses();
        (0..=cores).map(move |c| cut(total, c, cores).clamp(before, before + mine) - before)
    }

    /// One table as plain words, for snapshots and tests: header, ids, lifetimes, links
    /// ([`avsg_device::machine::memory`]).
    ///
    /// # Errors
    /// If there is no such state, or the device does not answer.
    pub fn read_table(&mut self, state: usize) -> Result<&[i32]> {
        crate::rows::index("state", state, self.core.config.states)?;
        self.device.read_table(&self.core, state)
    }

    /// [`Self::read_table`] where it cannot fail.
    ///
    /// # Panics
    /// If there is no such state, or the device does not answer.
    pub fn table(&mut self, state: usize) -> &[i32] {
        self.read_table(state).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Waits for the device and destroys the engine.
    ///
    /// # Errors
    /// What went wrong on the way; everything is released nevertheless.
    pub fn close(mut self) -> Result<()> {
        let context = self.device.ascend().map(|ascend| Arc::clone(ascend.context()));
        drop(self);
        context.map_or(Ok(()), Context::finish)
    }
}
