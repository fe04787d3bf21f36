//! The calls of a step over arrays in host memory, which return when their work is done.

use std::time::Instant;

use super::{Batch, Engine, Fresh, check};
use crate::Result;
use crate::batch::{Layer, Step};
use crate::plan::Plan;
use crate::resources::Resources;

impl Engine {
    /// Runs Stage One: writes the slots and the miss lists of a batch into `plan`.
    ///
    /// # Errors
    /// If the batch or the plan breaks a rule; nothing is changed then. If an Ascend call fails,
    /// the next plan starts every table cold.
    pub fn plan(&mut self, batch: &Batch<'_>, plan: &mut Plan) -> Result<()> {
        check::batch(&self.resources, &mut self.named, batch, plan)?;
        self.begin();
        self.run_plan(batch, plan)
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
    /// or lacks the rows of an older one. Nothing is copied then. If a row of a pool in a file cannot be
    /// read, the layer does not hold the plan: make the same call again, or discard the plan.
    pub fn transfer(
        &mut self,
        plan: &mut Plan,
        layer: usize,
        fresh: Option<&Fresh<'_>>,
    ) -> Result<()> {
        check::plan(&self.resources, plan)?;
        check::fresh(&self.resources, layer, plan.rows(), fresh.map(Fresh::bytes), plan.fresh)?;
        check::indexer(&self.resources, layer, plan.indexer)?;
        check::blocks(&self.resources, &plan.state[..plan.requests])?;
        self.order.check(plan, layer)?;
        self.run_transfer(plan, Layer { number: layer, fresh })
    }

    /// Runs [`Self::plan`] and [`Self::transfer`] of one layer as one launch, with SyncAll between
    /// the stages; over a pool in a file, one after the other.
    ///
    /// # Errors
    /// As for [`Self::plan`] and [`Self::transfer`]. `fresh` is required if some `stable_len` is
    /// not -1. If a row of a pool in a file cannot be read, the batch is planned and not transferred.
    pub fn step(
        &mut self,
        batch: &Batch<'_>,
        plan: &mut Plan,
        layer: usize,
        fresh: Option<&Fresh<'_>>,
    ) -> Result<()> {
        check::batch(&self.resources, &mut self.named, batch, plan)?;
        let may_need_fresh = batch.stable_len.iter().any(|&s| s >= 0);
        check::fresh(
            &self.resources,
            layer,
            batch.tokens(),
            fresh.map(Fresh::bytes),
            may_need_fresh,
        )?;
        check::indexer(&self.resources, layer, batch.indexer)?;
        self.begin();
        self.order.check_next(batch, layer)?;
        let layer = Layer { number: layer, fresh };
        if self.resources.pool.store().is_some() {
            // The plan is noted before its rows are read, because a read may fail.
            self.run_plan(batch, plan)?;
            return self.run_transfer(plan, layer);
        }
        let step = Step { batch: Some(batch), layer: Some(layer) };
        let start = Instant::now();
        let plan_time = self.device.run(&self.resources, &step, plan)?;
        self.counters.stepped(start.elapsed(), plan_time);
        self.counters.planned(batch, plan);
        self.order.planned(batch, plan);
        self.transferred(plan, layer.number);
        Ok(())
    }

    /// Runs Stage One of a checked batch.
    fn run_plan(&mut self, batch: &Batch<'_>, plan: &mut Plan) -> Result<()> {
        let start = Instant::now();
        self.device.run(&self.resources, &Step { batch: Some(batch), layer: None }, plan)?;
        self.counters.total.plan_time += start.elapsed();
        self.counters.planned(batch, plan);
        self.order.planned(batch, plan);
        Ok(())
    }

    /// Runs Stage Two of a checked plan.
    fn run_transfer(&mut self, plan: &mut Plan, layer: Layer<'_>) -> Result<()> {
        let start = Instant::now();
        self.device.run(&self.resources, &Step { batch: None, layer: Some(layer) }, plan)?;
        self.counters.total.transfer_time += start.elapsed();
        self.transferred(plan, layer.number);
        Ok(())
    }

    /// Starts a plan. After a failure that left every table cold, the bookkeeping starts cold, too.
    pub(super) fn begin(&mut self) {
        if self.order.begin(self.device.epoch()) {
            self.counters.emptied();
        }
    }

    /// Notes that a layer holds the rows of a plan.
    fn transferred(&mut self, plan: &Plan, layer: usize) {
        let bytes = plan.total_misses() * self.resources.pool.format().bytes();
        self.counters.total.transfers += 1;
        self.counters.total.transferred_bytes += bytes as u64;
        self.order.transferred(plan, layer);
    }

    /// Writes this step's fresh rows to one layer of the host pool: token g of a request becomes
    /// the row of id `stable_len` + g.
    ///
    /// A request may have any number of rows here, not only N_q, which writes the rows of a prefill or
    /// of a restore: `stable_len` is the id of its first row, and its state is any that no other
    /// request of the batch names.
    ///
    /// Call it after the layer's transfer and before the next transfer to that layer. Requests without a
    /// state or with a `stable_len` of -1 are skipped, and so are rows whose id is not below
    /// `seq_len`.
    ///
    /// # Errors
    /// If some row has no place in the pool, or this process may not write the pool; nothing is
    /// written then. If an Ascend call fails, rows may be missing: call it again before any other
    /// call. If a pool in a file does not take a row, because an earlier write failed, make the same call
    /// again; until then the rows that were not taken are errors when they are read.
    pub fn append(&mut self, batch: &Batch<'_>, layer: usize, fresh: &Fresh<'_>) -> Result<()> {
        check::shape(&self.resources, &mut self.named, batch, i32::MAX as u32)?;
        check::fresh(&self.resources, layer, batch.tokens(), Some(fresh.bytes()), true)?;
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
}
