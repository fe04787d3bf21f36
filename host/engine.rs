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
mod order;
mod queue;

use avsg_device::stage_two::cut;

use crate::Result;
use crate::backend::Device;
use crate::batch::{Layer, Step};
use crate::buffer::DeviceBuffer;
use crate::copy::Copier;
use crate::plan::Plan;
use crate::pool::HostPool;
use crate::resources::Resources;
use order::Order;

pub use crate::batch::{Batch, Fresh};
pub use crate::queued::{DeviceArray, DeviceBatch, DeviceFresh, DevicePlan, DeviceRows, RawStream};
pub use crate::resources::{Choice, Config};

/// The operator on one device. [`crate::cpu`] and [`crate::ascend`] have its constructors.
///
/// One thread calls it at a time. A step allocates nothing and takes no blocking lock.
pub struct Engine {
    // Before the resources: what a device registered of the pool goes first.
    device: Box<dyn Device>,
    resources: Resources,
    /// States that the batch under check has named.
    named: Box<[bool]>,
    order: Order,
}

impl Engine {
    pub(crate) fn with(resources: Resources, device: Box<dyn Device>) -> Self {
        let states = resources.config.states;
        let order = Order::new(states, resources.pool.layers());
        Self { named: vec![false; states].into(), order, device, resources }
    }

    /// What it was made from; on a device, with the cores that it really has.
    pub fn config(&self) -> &Config {
        &self.resources.config
    }

    /// The device: "cpu", "ascend" or "ascend-sim".
    pub fn device(&self) -> &'static str {
        self.device.name()
    }

    /// The name of the vector machine that runs its kernels; none on a device.
    pub fn machine(&self) -> Option<&'static str> {
        self.device.machine()
    }

    /// How it copies rows; none on a device, whose cores do.
    pub fn copier(&self) -> Option<Copier> {
        self.device.copier()
    }

    /// Its host pool.
    pub fn pool(&self) -> &HostPool {
        &self.resources.pool
    }

    /// Its device buffer. On a device its addresses are the device's.
    pub fn buffer(&self) -> &DeviceBuffer {
        &self.resources.buffer
    }

    /// A plan for batches of at most so many rows (tokens) and requests. Several may be in flight.
    ///
    /// # Errors
    /// If a number is 0 or above 2^20, or the device has no memory for it.
    pub fn new_plan(&self, max_rows: usize, max_requests: usize) -> Result<Plan> {
        let k = self.resources.config.params.k as usize;
        let mut plan = Plan::with_capacity(self.resources.id, k, max_rows, max_requests)?;
        self.device.prepare(&mut plan)?;
        Ok(plan)
    }

    /// Stage One: slots and miss lists of a batch.
    ///
    /// # Errors
    /// If the batch or the plan breaks a rule; nothing has changed then. If a device fails, the
    /// next plan starts every table cold.
    pub fn plan(&mut self, batch: &Batch<'_>, plan: &mut Plan) -> Result<()> {
        check::batch(&self.resources, &mut self.named, batch, plan)?;
        self.order.begin(self.device.epoch());
        self.device.run(&self.resources, &Step::Plan(batch), plan)?;
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
        check::plan(&self.resources, plan)?;
        check::fresh(&self.resources, layer, plan.rows(), fresh, plan.fresh)?;
        self.order.check(plan, layer)?;
        let step = Step::Transfer(Layer { number: layer, fresh });
        self.device.run(&self.resources, &step, plan)?;
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
        check::batch(&self.resources, &mut self.named, batch, plan)?;
        let may_need_fresh = batch.stable_len.iter().any(|&s| s >= 0);
        check::fresh(&self.resources, layer, batch.rows(), fresh, may_need_fresh)?;
        self.order.begin(self.device.epoch());
        self.order.check_next(batch, layer)?;
        let step = Step::Both(batch, Layer { number: layer, fresh });
        self.device.run(&self.resources, &step, plan)?;
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
        check::shape(&self.resources, &mut self.named, batch)?;
        check::fresh(&self.resources, layer, batch.rows(), Some(fresh), true)?;
        check::writer(&self.resources)?;
        self.resources.check_places(batch)?;
        let layer = Layer { number: layer, fresh: Some(fresh) };
        self.device.append(&self.resources, batch, layer)
    }

    /// Where each core's share of a request's miss list begins, and its end: cores + 1 offsets into
    /// `plan.misses(request)`, for the balanced strategy.
    ///
    /// # Panics
    /// If there is no such request.
    pub fn cuts(&self, plan: &Plan, request: usize) -> impl Iterator<Item = usize> {
        let cores = self.resources.config.cores;
        let len = |r| plan.misses(r).id.len();
        let (before, mine): (usize, usize) = ((0..request).map(len).sum(), len(request));
        let total = plan.total_misses();
        (0..=cores).map(move |c| cut(total, c, cores).clamp(before, before + mine) - before)
    }

    /// One table as plain words, for snapshots and tests: header, ids, lifetimes, links
    /// ([`avsg_device::memory`]).
    ///
    /// # Errors
    /// If there is no such state, or the device does not answer.
    pub fn read_table(&mut self, state: usize) -> Result<&[i32]> {
        crate::rows::index("state", state, self.resources.config.states)?;
        self.device.read_table(&self.resources, state)
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
    pub fn close(self) -> Result<()> {
        let Self { device, resources, .. } = self;
        device.close(resources)
    }
}
