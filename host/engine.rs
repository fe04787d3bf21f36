//! The engine: the tables, the device buffer and the host pool of one device, and the calls of a
//! decode step.
//!
//! ```text
//! plan(batch)  -> slots, miss lists            once per indexer, into its tables
//! transfer(plan, layer, fresh)                 per layer: misses host to device
//! append(batch, layer, fresh)                  per layer: this step's rows to the host pool
//! step = plan + SyncAll + transfer, one launch
//! ```
//! A state is one request's tables, one per indexer, and its S slots in every layer. Two requests of one batch must
//! not name one state.

mod check;
mod order;
mod queue;
mod state;
mod stats;

use std::time::Instant;

use avsg_device::stage_two::share_start;

use crate::backend::Device;
use crate::batch::{Layer, Step};
use crate::buffer::DeviceBuffer;
use crate::copy::Copier;
use crate::plan::Plan;
use crate::pool::HostPool;
use crate::resources::Resources;
use crate::{Result, memory, rows};
use order::Order;
use stats::Counters;

pub use crate::batch::{Batch, Fresh, MAX_REQUESTS};
pub use crate::device_arrays::{
    DeviceArray, DeviceBatch, DeviceFresh, DevicePlan, DeviceRows, RawStream,
};
pub use crate::indexers::Indexers;
pub use crate::resources::{Config, MachineChoice};
pub use state::Load;
pub use stats::Stats;

/// The operator on one device. [`Engine::new`] makes one on the CPU and [`Engine::on_ascend`] one
/// on an Ascend device.
///
/// One thread may call an engine at a time. A step on the CPU allocates nothing and takes no lock;
/// it sleeps only while another worker runs a piece of it. In a forked child, the calls of the
/// parent's engines and pools are [`Error::Forked`](crate::Error::Forked). A step on an Ascend device allocates only if the block tables or the fresh rows
/// are larger than in all steps before.
pub struct Engine {
    // Dropped before the resources, because a device unregisters the pool's chunks before they are
    // unmapped.
    device: Box<dyn Device>,
    resources: Box<Resources>,
    /// One flag per state, which [`check::shape`] sets for the states of the batch that it checks.
    named: Box<[bool]>,
    order: Order,
    counters: Counters,
}

impl Engine {
    pub(crate) fn from_parts(resources: Box<Resources>, device: Box<dyn Device>) -> Result<Self> {
        let (states, indexers) = (resources.config.states, resources.config.indexers.count());
        let order = Order::new(states, indexers, resources.pool.layers())?;
        let slots = resources.config.params.slots as usize;
        let counters = Counters::new(indexers, states, slots)?;
        let named = memory::filled("states", states, false)?.into();
        Ok(Self { named, order, counters, device, resources })
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

    /// Returns the name of the vector machine that runs the kernels on the CPU; `None` on Ascend
    /// devices.
    pub fn machine(&self) -> Option<&'static str> {
        self.device.machine()
    }

    /// Returns the number of threads that run a step on the CPU, the caller's included; `None` on
    /// Ascend devices.
    pub fn threads(&self) -> Option<usize> {
        self.device.threads()
    }

    /// Returns how the CPU copies rows; `None` on Ascend devices, whose kernels copy.
    pub fn copier(&self) -> Option<Copier> {
        self.device.copier()
    }

    /// Returns the host pool.
    pub fn pool(&self) -> &HostPool {
        &self.resources.pool
    }

    /// Returns the device buffer. On an Ascend device its addresses are device addresses.
    pub fn buffer(&self) -> &DeviceBuffer {
        &self.resources.buffer
    }

    /// Returns the counters and times of the calls so far.
    pub fn stats(&self) -> Stats {
        self.counters.total
    }

    /// Allocates a plan for batches of at most `max_rows` rows (tokens) and `max_requests`
    /// requests. Several plans of one engine may be in use at once.
    ///
    /// # Errors
    /// If a number is 0 or above 2^20, or the host or the device has too little memory.
    pub fn new_plan(&self, max_rows: usize, max_requests: usize) -> Result<Plan> {
        self.resources.check_process()?;
        let (id, config) = (self.resources.id, &self.resources.config);
        let allocator = config.allocator.as_ref();
        let mut plan = Plan::with_capacity(id, &config.params, max_rows, max_requests, allocator)?;
        self.device.prepare(&self.resources, &mut plan)?;
        plan.note_arrays()?;
        self.resources.buffer.note_memory(&mut plan.written)?;
        self.device.note_memory(&mut plan.written)?;
        Ok(plan)
    }

    /// Runs Stage One: writes the slots and the miss lists of a batch into `plan`.
    ///
    /// # Errors
    /// If the batch or the plan breaks a rule; nothing is changed then. If an Ascend call fails,
    /// the next plan starts every table cold.
    pub fn plan(&mut self, batch: &Batch<'_>, plan: &mut Plan) -> Result<()> {
        check::batch(&self.resources, &mut self.named, batch, plan)?;
        self.begin();
        let start = Instant::now();
        self.device.run(&self.resources, &Step::Plan(batch), plan)?;
        self.counters.total.plan_time += start.elapsed();
        self.counters.planned(batch, plan);
        self.order.planned(batch, plan);
        Ok(())
    }

    /// Runs Stage Two: copies the rows that a plan missed into the slots of one layer.
    ///
    /// Every plan that missed a row must be transferred to every layer whose slots are read. For
    /// one layer and one state, transfers must come in the order of the plans. Different layers are
    /// independent: the next batch may be planned, and transferred to layers that hold this plan's
    /// rows, before the other layers have them. A plan may be transferred to one layer twice.
    ///
    /// # Errors
    /// If the layer does not exist or belongs to another indexer, the plan belongs to another engine, `fresh` lacks rows that the
    /// plan needs, or the plan is out of order: the layer holds rows of a newer plan of some state,
    /// or lacks the rows of an older one. Nothing is copied then.
    pub fn transfer(
        &mut self,
        plan: &mut Plan,
        layer: usize,
        fresh: Option<&Fresh<'_>>,
    ) -> Result<()> {
        check::plan(&self.resources, plan)?;
        check::fresh(&self.resources, layer, plan.rows(), fresh, plan.fresh)?;
        check::indexer(&self.resources, layer, plan.indexer)?;
        check::blocks(&self.resources, &plan.state[..plan.requests])?;
        self.order.check(plan, layer)?;
        let step = Step::Transfer(Layer { number: layer, fresh });
        let start = Instant::now();
        self.device.run(&self.resources, &step, plan)?;
        self.counters.total.transfer_time += start.elapsed();
        self.transferred(plan, layer);
        Ok(())
    }

    /// Runs [`Self::plan`] and [`Self::transfer`] of one layer as one launch, with SyncAll between
    /// the stages.
    ///
    /// # Errors
    /// As for [`Self::plan`] and [`Self::transfer`]. `fresh` is required if some `stable_len` is
    /// not -1.
    pub fn step(
        &mut self,
        batch: &Batch<'_>,
        plan: &mut Plan,
        layer: usize,
        fresh: Option<&Fresh<'_>>,
    ) -> Result<()> {
        check::batch(&self.resources, &mut self.named, batch, plan)?;
        let may_need_fresh = batch.stable_len.iter().any(|&s| s >= 0);
        check::fresh(&self.resources, layer, batch.rows(), fresh, may_need_fresh)?;
        check::indexer(&self.resources, layer, batch.indexer)?;
        self.begin();
        self.order.check_next(batch, layer)?;
        let step = Step::PlanAndTransfer(batch, Layer { number: layer, fresh });
        let start = Instant::now();
        let plan_time = self.device.run(&self.resources, &step, plan)?;
        self.counters.stepped(start.elapsed(), plan_time);
        self.counters.planned(batch, plan);
        self.order.planned(batch, plan);
        self.transferred(plan, layer);
        Ok(())
    }

    /// Starts a plan. After a failure that left every table cold, the bookkeeping starts cold, too.
    fn begin(&mut self) {
        if self.order.begin(self.device.epoch()) {
            self.counters.emptied();
        }
    }

    /// Notes that a layer holds the rows of a plan.
    fn transferred(&mut self, plan: &Plan, layer: usize) {
        self.counters.transferred(plan.total_misses(), self.resources.pool.format().bytes());
        self.order.transferred(plan, layer);
    }

    /// Writes this step's fresh rows to one layer of the host pool: token g of a request becomes
    /// the row of id `stable_len` + g.
    ///
    /// A request may have any number of rows here, not only N_q, which writes the rows of a prefill or
    /// of a restore: `stable_len` is the id of its first row, and its state is any that no other
    /// request of the batch names.
    ///
    /// Call it after the layer's transfer and before the next batch is planned. Requests without a
    /// state or with a `stable_len` of -1 are skipped, and so are rows whose id is not below
    /// `seq_len`.
    ///
    /// # Errors
    /// If some row has no place in the pool, or this process may not write the pool; nothing is
    /// written then. If an Ascend call fails, rows may be missing: call it again before any other
    /// call.
    pub fn append(&mut self, batch: &Batch<'_>, layer: usize, fresh: &Fresh<'_>) -> Result<()> {
        check::shape(&self.resources, &mut self.named, batch, i32::MAX as u32)?;
        check::fresh(&self.resources, layer, batch.rows(), Some(fresh), true)?;
        check::writer(&self.resources)?;
        self.resources.check_append_rows(batch)?;
        let layer = Layer { number: layer, fresh: Some(fresh) };
        let most = self.resources.config.params.tokens as i32;
        let start = Instant::now();
        if batch.cu_q.windows(2).any(|pair| pair[1] - pair[0] > most) {
            // A device would need as much memory for the rows as the pool has.
            self.resources.write_rows(batch, layer)?;
        } else {
            self.device.append(&self.resources, batch, layer)?;
        }
        self.counters.appended(
            start.elapsed(),
            Resources::fresh_ids(batch).count() * self.resources.pool.format().bytes(),
        );
        Ok(())
    }

    /// Returns the offsets in `plan.misses(request)` where each core's share begins, then the end
    /// of the last share: cores + 1 offsets, for the balanced strategy.
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

    /// Reads the table of one state and the first indexer as int32 words, for snapshots and tests: the header, ids,
    /// lifetimes and links of [`avsg_device::memory`].
    ///
    /// # Errors
    /// If there is no such state, or the copy from the device fails.
    pub fn read_table(&mut self, state: usize) -> Result<&[i32]> {
        self.read_indexer_table(0, state)
    }

    /// Reads the table of one state and any indexer, as [`Self::read_table`] does.
    ///
    /// # Errors
    /// As for [`Self::read_table`], or if there is no such indexer.
    pub fn read_indexer_table(&mut self, indexer: usize, state: usize) -> Result<&[i32]> {
        self.resources.check_process()?;
        let config = &self.resources.config;
        rows::index("indexer", indexer, config.indexers.count())?;
        rows::index("state", state, config.states)?;
        let table = config.table(indexer, state);
        self.device.read_table(&self.resources, table)
    }

    /// Returns what [`Self::read_table`] reads.
    ///
    /// # Panics
    /// If [`Self::read_table`] fails.
    pub fn table(&mut self, state: usize) -> &[i32] {
        self.read_table(state).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Waits for the device and destroys the engine.
    ///
    /// # Errors
    /// The oldest error of the releases. Everything is released in any case.
    pub fn close(self) -> Result<()> {
        let Self { device, resources, .. } = self;
        device.close(resources)
    }
}
