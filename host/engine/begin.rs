//! The calls that begin a transfer, ask for it and wait for it.

use super::under_way::Parts;
use super::{Batch, Engine, Fresh, check};
use crate::call::{Call, HostCall, Work};
use crate::plan::Plan;
use crate::{Result, ensure};

impl Engine {
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
        let call = self.check_transfer(plan, layers, fresh)?;
        self.check_free(plan)?;
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

    /// Checks that a transfer of a plan may be begun when that under way has ended.
    pub(super) fn check_free(&mut self, plan: &Plan) -> Result<()> {
        if plan.under_way.is_some() {
            return Ok(());
        }
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

    /// Checks a transfer.
    pub(super) fn check_transfer<'a>(
        &mut self,
        plan: &mut Plan,
        layers: &'a [usize],
        fresh: Option<&Fresh<'a>>,
    ) -> Result<HostCall<'a>> {
        check::plan(&self.resources, plan)?;
        ensure!(plan.under_way.is_none(), "plan number" is plan.number, but
            "a transfer of it is under way"; "wait for it first, or list all layers in one call");
        let batch = Batch { indexer: plan.indexer, ..Batch::default() };
        let fresh = fresh.map(|fresh| fresh.segments);
        let call = Call { layers, fresh, ..Call::of(Work::Transfer, batch, plan.tokens()) };
        let call = self.check(call, Some(plan))?;
        self.order.leave_out_lost(plan);
        self.order.check(plan, layers, &self.resources.config.indexers)?;
        Ok(call)
    }
}
