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
mod device;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use avsg_device::params::Params;
use avsg_device::stage_two::{Strategy, cut};

use crate::buffer::{BufferConfig, DeviceBuffer};
use crate::copy::Copier;
use crate::launch::cpu::Team;
use crate::machine::{Choice, Machine};
use crate::plan::Plan;
use crate::pool::{HostPool, Role};
use crate::{Error, Result};
use device::{Device, Outputs, Transfer};

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

/// The operator on one device.
///
/// One thread calls it at a time. A step allocates nothing and takes no blocking lock.
pub struct Engine {
    device: Device,
    team: Team,
    /// States that the batch under check has named.
    named: Box<[bool]>,
}

impl Engine {
    /// Device memory that an engine takes, in bytes: (slots, tables and working columns).
    ///
    /// # Errors
    /// If the geometry is not valid.
    pub fn bytes_needed(config: &Config, buffer: &BufferConfig) -> Result<(usize, usize)> {
        Device::bytes_needed(config, buffer)
    }

    /// Takes all memory and starts the cores. The engine's layers and row format are the pool's,
    /// which several engines may share (pass clones of an `Arc`).
    ///
    /// # Errors
    /// If the geometry breaks a rule, memory is short, or a core cannot be started.
    pub fn new(config: Config, pool: impl Into<Arc<HostPool>>) -> Result<Self> {
        let device = Device::new(config, pool.into())?;
        let team = Team::new(config.cores)?;
        Ok(Self { named: vec![false; config.states].into(), device, team })
    }

    /// What it was made from.
    pub fn config(&self) -> &Config {
        &self.device.config
    }

    /// The machine that runs its kernels.
    pub fn machine(&self) -> Machine {
        self.device.machine
    }

    /// How it copies rows.
    pub fn copier(&self) -> Copier {
        self.device.copier
    }

    /// Its host pool.
    pub fn pool(&self) -> &HostPool {
        &self.device.pool
    }

    /// Its device buffer.
    pub fn buffer(&self) -> &DeviceBuffer {
        &self.device.buffer
    }

    /// A plan for batches of at most so many rows (tokens) and requests. Several may be in flight.
    ///
    /// # Errors
    /// If a number is 0 or above 2^20.
    pub fn new_plan(&self, max_rows: usize, max_requests: usize) -> Result<Plan> {
        let k = self.device.config.params.k as usize;
        Plan::with_capacity(self.device.id, k, max_rows, max_requests)
    }

    /// Stage One: slots and miss lists of a batch.
    ///
    /// # Errors
    /// If the batch or the plan breaks a rule; nothing has changed then.
    pub fn plan(&mut self, batch: &Batch<'_>, plan: &mut Plan) -> Result<()> {
        check::batch(&self.device, &mut self.named, batch, plan)?;
        plan.begin(batch);
        let (outputs, next) = (Outputs::of(plan), AtomicUsize::new(0));
        let device = &self.device;
        self.team.launch(
            work(batch, 0),
            Some(&|_, worker| device.stage_one(batch, &outputs, worker, &next)),
            None,
        )?;
        plan.finish();
        Ok(())
    }

    /// Stage Two: copies a plan's misses into one layer's slots.
    ///
    /// # Errors
    /// If the layer does not exist, the plan is another engine's, or it has fresh rows and `fresh`
    /// does not hold them; nothing was copied then.
    pub fn transfer(
        &mut self,
        plan: &mut Plan,
        layer: usize,
        fresh: Option<&Fresh<'_>>,
    ) -> Result<()> {
        check::plan(&self.device, plan)?;
        check::fresh(&self.device, layer, plan.rows(), fresh, plan.fresh)?;
        let outputs = Outputs::of(plan);
        let transfer = Transfer::new(&self.device, &outputs, layer, fresh)?;
        let copy = copy_nanoseconds(&self.device, plan.misses);
        self.team.launch(copy, None, Some(&|core, _| transfer.run(core)))
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
        check::batch(&self.device, &mut self.named, batch, plan)?;
        let rows = batch.cu_q.last().map_or(0, |&n| n as usize);
        let may_need_fresh = batch.stable_len.iter().any(|&s| s >= 0);
        check::fresh(&self.device, layer, rows, fresh, may_need_fresh)?;
        plan.begin(batch);
        let (outputs, next) = (Outputs::of(plan), AtomicUsize::new(0));
        let device = &self.device;
        let transfer = Transfer::new(device, &outputs, layer, fresh)?;
        // Plan knows the misses only afterwards: a tenth of the ids is the usual share.
        let copy = copy_nanoseconds(device, rows * batch.k / 10);
        self.team.launch(
            work(batch, copy),
            Some(&|_, worker| device.stage_one(batch, &outputs, worker, &next)),
            Some(&|core, _| transfer.run(core)),
        )?;
        plan.finish();
        Ok(())
    }

    /// Writes this step's rows, which were only fresh until now, to one layer of the host pool:
    /// token g of a request becomes the row of id `stable_len` + g. Call it when the layer's gather
    /// is done and before the next step plans. Requests without `stable_len` or state are passed over.
    ///
    /// # Errors
    /// If some row has no place in the pool, or this process may not write it; nothing was written
    /// then.
    pub fn append(&mut self, batch: &Batch<'_>, layer: usize, fresh: &Fresh<'_>) -> Result<()> {
        let rows = batch.cu_q.last().map_or(0, |&n| n.max(0) as usize);
        check::shape(&self.device, &mut self.named, batch)?;
        check::fresh(&self.device, layer, rows, Some(fresh), true)?;
        if self.device.pool.role() == Role::Reader {
            let limit = "a reader's mapping is read only";
            return Err(Error::invalid(
                "pool role",
                "reader",
                limit,
                "append in the writer process",
            ));
        }
        self.device.append(batch, layer, fresh)
    }

    /// Where each core's share of a request's miss list begins, and its end: cores + 1 offsets into
    /// `plan.misses(request)`, for the balanced strategy.
    ///
    /// # Panics
    /// If there is no such request.
    pub fn cuts(&self, plan: &Plan, request: usize) -> impl Iterator<Item = usize> {
        let cores = self.device.config.cores;
        let len = |r| plan.misses(r).id.len();
        let (before, mine): (usize, usize) = ((0..request).map(len).sum(), len(request));
        let total = plan.total_misses();
        (0..=cores).map(move |c| cut(total, c, cores).clamp(before, before + mine) - before)
    }

    /// One table as plain words, for snapshots and tests: header, ids, lifetimes, links
    /// ([`avsg_device::machine::memory`]).
    ///
    /// # Panics
    /// If there is no such state.
    pub fn table(&mut self, state: usize) -> &[i32] {
        assert!(state < self.device.config.states, "state {state}");
        // SAFETY: `&mut self`: no launch runs.
        unsafe { self.device.table(state) }
    }
}

/// About what copying so many rows takes one core: 6 bytes a nanosecond, measured.
fn copy_nanoseconds(device: &Device, rows: usize) -> u64 {
    (rows * device.pool.format().bytes() / 6) as u64
}

/// About what a launch takes one core: 4 ns per id, measured. One request is one core's work.
fn work(batch: &Batch<'_>, copy: u64) -> u64 {
    let rows = batch.cu_q.last().map_or(0, |&n| n as usize);
    let shared = if batch.state.len() > 1 { (rows * batch.k * 4) as u64 } else { 0 };
    shared + copy
}
