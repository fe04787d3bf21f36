//! Stage Two: the calls that transfer a plan to layers, at once or begun and waited for.

use std::mem;
use std::time::Instant;

use avsg_device::memory::clear_state;

use super::{Batch, Engine, check};
use crate::call::{Call, HostCall, Work};
use crate::plan::{Failure, Plan};
use crate::{Error, Result, ensure};

impl Engine {
    /// Runs Stage Two of some layers, listed in ascending order: copies the rows that a plan missed into
    /// their slots. The CPU device wakes its workers once for all of them, and a pool in a file reads
    /// each record once. `fresh` has the rows of this step's tokens, which the pool does not
    /// hold yet: the segments of each layer, in the order of the list. In each, the row of token r begins at byte
    /// r · stride.
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
    pub fn transfer(
        &mut self,
        plan: &mut Plan,
        layers: &[usize],
        fresh: Option<&[&[u8]]>,
    ) -> Result<()> {
        if layers.is_empty() {
            return self.check_transfer(plan, layers, fresh).map(drop);
        }
        self.begin(plan, layers, fresh)?;
        self.wait(plan)
    }

    /// Starts [`Self::transfer`] and returns while the rows are read from a file or copied by other
    /// threads. Fresh rows are copied in the call, and all others, too, if the engine has one thread, an executor or
    /// so few rows that waking a thread takes longer. Over a pool in a file the kernel reads meanwhile, and
    /// [`Self::wait`] copies; without io_uring the workers do both.
    ///
    /// Until [`Self::wait`] has succeeded, the slots that the plan missed are not read in these layers, and its
    /// states are not planned for its indexer. Its slots, hits and misses may be read, the slots of hits, too, and
    /// other plans may be made, begun and waited for in any order.
    ///
    /// # Errors
    /// As for [`Self::transfer`], or if the list is empty, or a transfer of the plan or of one of its states is
    /// under way for its indexer. [`Error::Busy`] if as many are as [`Config::under_way`](crate::engine::Config::under_way)
    /// says. Then nothing is begun.
    pub fn begin(
        &mut self,
        plan: &mut Plan,
        layers: &[usize],
        fresh: Option<&[&[u8]]>,
    ) -> Result<()> {
        ensure!(!layers.is_empty(), "layers" is 0, but "a transfer that is begun has at least one";
            "list the layers of the plan's indexer");
        let call = self.check_transfer(plan, layers, fresh)?;
        self.check_free(plan)?;
        self.start_transfer(&call, plan)
    }

    /// Waits for the transfer of a plan that [`Self::begin`] has started, and takes part in it. The slots of its
    /// layers may be read then.
    ///
    /// # Errors
    /// Those of [`Self::transfer`] after its checks, or if no transfer of the plan is under way. After any
    /// error none is.
    pub fn wait(&mut self, plan: &mut Plan) -> Result<()> {
        self.check_begun(plan)?;
        self.end_transfer(plan)
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
        check::plan(&self.resources, plan)?;
        ensure!(plan.under_way.is_some(), "plan number" is plan.number, but
            "no transfer of it is under way"; "begin one first, and wait for it once");
        Ok(())
    }

    /// Checks a transfer.
    fn check_transfer<'a>(
        &mut self,
        plan: &mut Plan,
        layers: &'a [usize],
        fresh: Option<&'a [&'a [u8]]>,
    ) -> Result<HostCall<'a>> {
        check::plan(&self.resources, plan)?;
        ensure!(plan.under_way.is_none(), "plan number" is plan.number, but
            "a transfer of it is under way"; "wait for it first, or list all layers in one call");
        let batch = Batch { indexer: plan.indexer, ..Batch::default() };
        let call = Call { layers, fresh, ..Call::of(Work::Transfer, batch, plan.tokens()) };
        let call = self.check(call, Some(plan))?;
        self.order.leave_out_lost(plan);
        self.order.check(plan, layers, &self.resources.config.indexers)?;
        Ok(call)
    }

    /// Returns a place at which no transfer is under way.
    fn free_place(&self) -> Result<usize> {
        let (place, under_way) =
            (self.under_way.trailing_ones() as usize, self.resources.config.transfers());
        if place < under_way { Ok(place) } else { Err(Error::Busy { under_way }) }
    }

    /// Checks that a transfer of a plan may be begun when that under way has ended.
    pub(super) fn check_free(&mut self, plan: &Plan) -> Result<()> {
        if plan.under_way.is_some() {
            return Ok(());
        }
        if self.free_place().is_err() {
            self.discard_dropped()?;
        }
        self.free_place().map(drop)
    }

    /// Starts a checked transfer to at least one layer.
    pub(super) fn start_transfer(&mut self, call: &HostCall<'_>, plan: &mut Plan) -> Result<()> {
        let states = plan.named().map(|(_, state)| state);
        self.order.check_under_way(plan.indexer, states, plan.number)?;
        let place = self.free_place()?;
        let mut layers = mem::take(&mut plan.layers);
        layers.extend_from_slice(call.layers);
        let start = Instant::now();
        // SAFETY: a plan that is dropped leaves its arrays and its list of layers to the engine, and until the
        // transfer has ended no call writes them, because each ends it first.
        let begun =
            unsafe { self.device.begin(place, &HostCall { layers: &layers, ..*call }, plan) };
        self.note_times(start, begun.is_ok());
        if begun.is_ok() {
            plan.under_way = Some(place);
            self.under_way |= 1 << place;
            self.order.set_under_way(plan, plan.number);
        } else {
            layers.clear();
        }
        plan.layers = layers;
        begun
    }

    /// Waits for the transfer of a plan, if one is under way.
    pub(super) fn end_transfer(&mut self, plan: &mut Plan) -> Result<()> {
        let Some(place) = plan.under_way.take() else { return Ok(()) };
        self.under_way &= !(1 << place);
        self.order.set_under_way(plan, 0);
        let mut layers = mem::take(&mut plan.layers);
        let start = Instant::now();
        let done = self.device.wait(place, &layers, plan);
        self.note_times(start, done.is_ok());
        if done.is_ok() {
            self.transferred(plan, &layers);
        }
        layers.clear();
        plan.layers = layers;
        done?;
        self.lose_failed(plan)
    }

    fn note_times(&mut self, start: Instant, succeeded: bool) {
        self.counters.live.read_wait_ns.add_time(self.device.take_read_wait());
        if succeeded {
            self.counters.live.transfer_ns.add_time(start.elapsed());
        }
    }

    /// Notes that layers hold the rows of a plan.
    pub(super) fn transferred(&mut self, plan: &mut Plan, layers: &[usize]) {
        plan.held = true;
        let served = (0..plan.requests).filter(|&request| plan.missed(request));
        let rows: usize = served.map(|request| plan.places(request).len()).sum();
        let bytes = rows * self.resources.pool.format().bytes();
        self.counters.live.transfers.add(layers.len());
        self.counters.live.transferred_bytes.add(bytes * layers.len());
        layers.iter().for_each(|&layer| self.order.transferred(plan, layer));
    }

    /// Empties the tables of the requests that a transfer has left out, and returns an error if there are any.
    fn lose_failed(&mut self, plan: &Plan) -> Result<()> {
        let Some(Failure { layer, row, .. }) = plan.failures().next() else { return Ok(()) };
        for failure in plan.failures() {
            if self.order.lose(plan, failure) {
                let state = plan.state[failure.request] as usize;
                let config = &self.resources.config;
                let table = config.table(plan.indexer, state);
                self.counters.emptied(table..table + 1);
                self.device.edit_table(table, &mut |words| {
                    clear_state(&config.params, words);
                    true
                })?;
            }
        }
        let remedy =
            "write the rows again that the plan's failures name, and plan these requests again";
        let (requests, place) = (plan.failures().count(), String::new());
        Err(Error::LostRows { requests, layer, row, place, remedy })
    }
}
