//! The calls of a step over arrays in host memory, which return when their work is done.

use std::time::Instant;

use super::under_way::Parts;
use super::{Batch, Engine, Fresh, check};
use crate::call::{Call, HostCall, Work};
use crate::plan::Plan;
use crate::resources::Resources;
use crate::{Result, ensure};

impl Engine {
    /// Runs Stage One: writes the slots and the miss lists of a batch into `plan`. What the plan holds is
    /// discarded first ([`Self::discard`]) if no layer has its rows, for example because an exception came
    /// before its transfer; an Ascend device waits for that, and else not. A plan that some layer holds is
    /// overwritten, and then its other layers must not be read before a new generation.
    ///
    /// # Errors
    /// If the batch or the plan breaks a rule, or the plan holds a batch of which no layer has the rows and
    /// which a newer plan of a state came after; nothing is changed then. If an Ascend call fails, the next
    /// plan starts every table cold.
    pub fn plan(&mut self, batch: &Batch<'_>, plan: &mut Plan) -> Result<()> {
        check::batch(&self.resources, &mut self.named, batch, plan)?;
        self.start_plan(Some(batch), plan, &[])?;
        self.run_plan(&Call::of(Work::Plan, *batch, batch.tokens()), plan)
    }

    /// Runs Stage Two: copies the rows that a plan missed into the slots of one layer. It is
    /// [`Self::transfer_layers`] with a list of one.
    ///
    /// # Errors
    /// As for [`Self::transfer_layers`].
    pub fn transfer(
        &mut self,
        plan: &mut Plan,
        layer: usize,
        fresh: Option<&Fresh<'_>>,
    ) -> Result<()> {
        self.transfer_layers(plan, &[layer], fresh)
    }

    /// Runs Stage Two of some layers, listed in ascending order: copies the rows that a plan missed into
    /// their slots. The CPU device wakes its workers once for all of them, and a pool in a file reads
    /// each record once. `fresh` has the segments of all layers.
    ///
    /// Every plan that missed a row must be transferred to every layer whose slots are read. For
    /// one layer and one state, transfers must come in the order of the plans. Different layers are
    /// independent: the next batch may be planned, and transferred to layers that hold this plan's
    /// rows, before the other layers have them. A plan may be transferred to one layer twice.
    ///
    /// # Errors
    /// If the list is not ascending, a layer does not exist or belongs to another indexer, the plan belongs to
    /// another engine, `fresh` lacks rows that the plan needs, or the plan is out of order: a layer holds rows
    /// of a newer plan of some state, or lacks the rows of an older one. Nothing is copied then. If the device
    /// of a pool in a file fails, none of the layers holds the plan: make the same call again, or discard the
    /// plan.
    ///
    /// [`LostRows`](crate::Error::LostRows) if rows of a pool in a file are not whole that some requests missed, or that
    /// earlier transfers did not get for them. The layers have the rows of all other requests then. The
    /// failed ones, which [`Plan::failures`] names, are left out of every later transfer of this plan and of
    /// the other plans since their state was cold, and their state's next plan for this indexer starts cold:
    /// compute them again.
    pub fn transfer_layers(
        &mut self,
        plan: &mut Plan,
        layers: &[usize],
        fresh: Option<&Fresh<'_>>,
    ) -> Result<()> {
        if layers.is_empty() {
            return self.checked_transfer(plan, layers, fresh).map(drop);
        }
        self.begin(plan, layers, fresh)?;
        self.wait(plan)
    }

    /// Starts [`Self::transfer_layers`] and returns while the rows are read from a file or copied by other
    /// threads. Fresh rows are copied in the call, and all others, too, if the engine has one thread, an executor or
    /// so few rows that waking a thread takes longer. Over a pool in a file the kernel reads meanwhile, and
    /// [`Self::wait`] copies; without io_uring the workers do both.
    ///
    /// Until [`Self::wait`] has succeeded, the slots that the plan missed are not read in these layers, and its
    /// states are not planned for its indexer. Its slots, hits and misses may be read, the slots of hits, too, and
    /// other plans may be made, begun and waited for in any order.
    ///
    /// # Errors
    /// As for [`Self::transfer_layers`], or if the list is empty, or a transfer of the plan or of one of its states is
    /// under way for its indexer. [`Error::Busy`](crate::Error::Busy) if as many are as [`Config::under_way`](crate::engine::Config::under_way)
    /// says. Then nothing is begun.
    pub fn begin(
        &mut self,
        plan: &mut Plan,
        layers: &[usize],
        fresh: Option<&Fresh<'_>>,
    ) -> Result<()> {
        ensure!(!layers.is_empty(), "layers" is 0, but "a transfer that is begun has at least one";
            "list the layers of the plan's indexer");
        let call = self.checked_transfer(plan, layers, fresh)?;
        self.check_free()?;
        self.parts().begin(&call, plan)
    }

    /// Waits for the transfer of a plan that [`Self::begin`] has started, and takes part in it. The slots of its
    /// layers may be read then.
    ///
    /// # Errors
    /// Those of [`Self::transfer_layers`] after its checks, or if no transfer of the plan is under way. After any
    /// error none is.
    pub fn wait(&mut self, plan: &mut Plan) -> Result<()> {
        self.check_begun(plan)?;
        self.parts().end(plan)
    }

    /// Returns, without waiting, whether [`Self::wait`] has nothing to wait for that was begun. What did not fit the
    /// memory for the records of a file is begun by that call. An Ascend device is not asked: it is true.
    ///
    /// # Errors
    /// If no transfer of the plan is under way.
    pub fn is_done(&mut self, plan: &Plan) -> Result<bool> {
        self.check_begun(plan)?;
        Ok(plan.under_way.is_none_or(|place| self.device.is_done(place)))
    }

    fn check_begun(&self, plan: &Plan) -> Result<()> {
        ensure!(!plan.is_queued(), "plan" is "planned in a stream", but
            "the host does not see its transfers"; "use an event of your stream");
        check::plan(&self.resources, plan)?;
        ensure!(plan.under_way.is_some(), "plan number" is plan.number, but
            "no transfer of it is under way"; "begin one first, and wait for it once");
        Ok(())
    }

    /// Checks that one more transfer may be begun.
    pub(super) fn check_free(&mut self) -> Result<()> {
        if self.under_way.free_place().is_none() {
            self.discard_dropped()?;
        }
        self.under_way.free_place().map_or_else(|| Err(self.under_way.busy()), |_| Ok(()))
    }

    /// Returns the parts that a plan's transfer or discard changes.
    pub(super) fn parts(&mut self) -> Parts<'_> {
        let Self { device, resources, order, counters, under_way, .. } = self;
        Parts { device: &mut **device, resources, order, counters, under_way }
    }

    fn checked_transfer<'a>(
        &mut self,
        plan: &mut Plan,
        layers: &'a [usize],
        fresh: Option<&Fresh<'a>>,
    ) -> Result<HostCall<'a>> {
        check::plan(&self.resources, plan)?;
        ensure!(plan.under_way.is_none(), "plan number" is plan.number, but
            "a transfer of it is under way"; "wait for it first, or list all layers in one call");
        let (batch, fresh) = (
            Batch { indexer: plan.indexer, ..Batch::default() },
            fresh.map(|fresh| fresh.segments),
        );
        let call = Call { layers, fresh, ..Call::of(Work::Transfer, batch, plan.rows()) };
        check::call(&self.resources, &call, plan.fresh)?;
        check::blocks(&self.resources, &plan.state[..plan.requests])?;
        self.order.leave_out_lost(plan);
        self.order.check(plan, layers, &self.resources.config.indexers)?;
        Ok(call)
    }

    /// Runs [`Self::plan`] and [`Self::transfer`] of one layer as one launch, with SyncAll between
    /// the stages; over a pool in a file, one after the other.
    ///
    /// # Errors
    /// As for [`Self::plan`] and [`Self::transfer`]. `fresh` is required if some `stable_len` is
    /// not -1. If the device of a pool in a file fails, the batch is planned and not transferred.
    pub fn step(
        &mut self,
        batch: &Batch<'_>,
        plan: &mut Plan,
        layer: usize,
        fresh: Option<&Fresh<'_>>,
    ) -> Result<()> {
        check::batch(&self.resources, &mut self.named, batch, plan)?;
        let may_need_fresh = batch.stable_len.iter().any(|&s| s >= 0);
        let (plan_only, fresh) =
            (Call::of(Work::Plan, *batch, batch.tokens()), fresh.map(|fresh| fresh.segments));
        let call = Call { work: Work::Step, layers: &[layer], fresh, ..plan_only };
        check::call(&self.resources, &call, may_need_fresh)?;
        let at_once = self.device.steps_in_one_launch();
        if !at_once {
            self.check_free()?;
        }
        self.start_plan(Some(batch), plan, call.layers)?;
        if at_once {
            self.run_plan(&call, plan)?;
            self.parts().transferred(plan, call.layers);
            return Ok(());
        }
        self.run_plan(&plan_only, plan)?;
        self.parts().begin(&Call { work: Work::Transfer, ..call }, plan)?;
        self.parts().end(plan)
    }

    /// Runs a plan or a step.
    fn run_plan(&mut self, call: &HostCall<'_>, plan: &mut Plan) -> Result<()> {
        let start = Instant::now();
        let plan_time = self.device.run(&self.resources, call, plan)?;
        let time = start.elapsed();
        self.counters.stepped(time, if call.work == Work::Plan { Some(time) } else { plan_time });
        self.order.planned(&call.batch, plan);
        self.counters.planned(&call.batch, plan, &mut *self.device, &self.resources);
        Ok(())
    }

    /// Starts a plan. After a failure that left every table cold, the bookkeeping starts cold, too. Returns
    /// whether it does.
    pub(super) fn check_epoch(&mut self) -> bool {
        let cold = self.order.begin(self.device.epoch());
        if cold {
            self.counters.emptied(0..self.resources.config.tables());
        }
        cold
    }

    /// Writes this step's fresh rows to one layer of the host pool. It is [`Self::append_layers`] with a
    /// list of one.
    ///
    /// # Errors
    /// As for [`Self::append_layers`].
    pub fn append(&mut self, batch: &Batch<'_>, layer: usize, fresh: &Fresh<'_>) -> Result<()> {
        self.append_layers(batch, &[layer], fresh)
    }

    /// Writes this step's fresh rows to some layers of the host pool, listed in ascending order: token g
    /// of a request becomes the row of id `stable_len` + g. `fresh` has the segments of all layers.
    ///
    /// A request may have any number of rows here, not only N_q, which writes the rows of a prefill or
    /// of a restore: `stable_len` is the id of its first row, and its state is any that no other
    /// request of the batch names.
    ///
    /// Call it after a layer's transfer and before the next transfer to that layer. Requests without a
    /// state or with a `stable_len` of -1 are skipped, and so are rows whose id is not below
    /// `seq_len`.
    ///
    /// # Errors
    /// If the list is not ascending or names no layer, some row has no place in the pool, or this process
    /// may not write the pool; nothing is written then. If an Ascend call fails, rows of any of the
    /// layers may be missing: call it again before any other call. If a pool in a file does not take a row,
    /// because an earlier write failed, make the same call again; until then the rows that were not taken,
    /// of any of the layers, are errors when they are read.
    pub fn append_layers(
        &mut self,
        batch: &Batch<'_>,
        layers: &[usize],
        fresh: &Fresh<'_>,
    ) -> Result<()> {
        check::shape(&self.resources, &mut self.named, batch, i32::MAX as u32)?;
        let fresh = Some(fresh.segments);
        let call = Call { layers, fresh, ..Call::of(Work::Append, *batch, batch.tokens()) };
        check::call(&self.resources, &call, true)?;
        self.resources.check_append_rows(batch)?;
        if layers.is_empty() {
            return Ok(());
        }
        let start = Instant::now();
        self.device.append(&self.resources, &call)?;
        let rows = Resources::fresh_ids(batch).count() * layers.len();
        let bytes = rows * self.resources.pool.format().bytes();
        self.counters.appended(start.elapsed(), layers.len(), bytes);
        Ok(())
    }
}
