//! The calls of a step over arrays in host memory, which return when their work is done.

use std::time::Instant;

use super::{Batch, Engine, check};
use crate::call::{Call, HostCall, Work, named};
use crate::plan::Plan;
use crate::resources::Resources;
use crate::{Result, rows};

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
        self.run_planning(Call::of(Work::Plan, *batch, 0), plan)
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
        fresh: Option<&[&[u8]]>,
    ) -> Result<()> {
        let call = Call { layers: &[layer], fresh, ..Call::of(Work::Step, *batch, 0) };
        self.run_planning(call, plan)
    }

    /// Checks a call and returns the form that the device takes.
    pub(super) fn check<'a>(
        &mut self,
        call: HostCall<'a>,
        plan: Option<&Plan>,
    ) -> Result<HostCall<'a>> {
        let call = check::call(&self.resources, &mut self.named, call, plan)?;
        self.device.check(&call)?;
        Ok(call)
    }

    /// Checks and runs a plan or a step.
    fn run_planning(&mut self, call: HostCall<'_>, plan: &mut Plan) -> Result<()> {
        let call = self.check(call, Some(plan))?;
        // The engine must know the plan of rows that could not be read.
        let in_two = call.work == Work::Step && self.resources.pool.store().is_some();
        if in_two {
            self.check_free(plan)?;
        }
        self.start_plan(&call.batch, plan, call.layers)?;
        if in_two {
            self.run_plan(&Call::of(Work::Plan, call.batch, call.tokens), plan)?;
            self.start_transfer(&Call { work: Work::Transfer, ..call }, plan)?;
            return self.end_transfer(plan);
        }
        self.run_plan(&call, plan)?;
        if call.work == Work::Step {
            self.transferred(plan, call.layers);
        }
        Ok(())
    }

    /// Starts a call that uses tables: discards the plans that were dropped before a layer had their rows.
    pub(super) fn start(&mut self) -> Result<()> {
        self.check_epoch();
        self.discard_dropped()
    }

    /// Starts a call that uses the table of an indexer and a state, and returns the number of the table.
    pub(super) fn start_on(&mut self, indexer: usize, state: usize) -> Result<usize> {
        self.resources.birth.check("engine")?;
        let config = &self.resources.config;
        rows::index("indexer", indexer, config.indexers.count())?;
        rows::index("state", state, config.states)?;
        let table = config.table(indexer, state);
        self.start()?;
        Ok(table)
    }

    /// Starts the bookkeeping of a call. After a failure that left every table cold, the bookkeeping starts cold, too. Returns
    /// whether it does.
    pub(super) fn check_epoch(&mut self) -> bool {
        let cold = self.order.begin(self.device.epoch());
        if cold {
            self.counters.emptied(0..self.resources.config.tables());
        }
        cold
    }

    /// Starts a plan of a checked batch, whose next transfer is to some layers, and discards what `plan` holds
    /// unless a layer holds it, too. Nothing is changed by a refusal. A batch of a stream, which the host does not see, is an empty one.
    pub(super) fn start_plan(
        &mut self,
        batch: &Batch<'_>,
        plan: &mut Plan,
        layers: &[usize],
    ) -> Result<()> {
        self.start()?;
        let states = named(batch.state).map(|(_, state)| state);
        self.order.check_under_way(batch.indexer, states, plan.number)?;
        // Whether that transfer succeeds is nobody's concern any more.
        let _ = self.end_transfer(plan);
        let unheld = plan.unheld();
        self.named.fill(false);
        if unheld {
            for (request, state) in named(batch.state) {
                let empties = self.order.empties(batch.indexer, state, batch.generation[request]);
                self.named[state] = empties && batch.indexer == plan.indexer;
            }
            self.order.leave_out_lost(plan);
            self.order.check_last(plan, Some(&self.named))?;
        }
        let indexers = &self.resources.config.indexers;
        let gone = self.dropped.iter().chain(Some(&*plan)).filter(|_| unheld);
        self.order.check_next(batch, layers, indexers, gone)?;
        if !unheld {
            return Ok(());
        }
        // What is emptied anyway needs no discard.
        for state in &mut plan.state[..plan.requests] {
            if usize::try_from(*state).is_ok_and(|state| self.named[state]) {
                *state = -1;
            }
        }
        self.give_up(plan)
    }

    /// Runs a plan or a step.
    fn run_plan(&mut self, call: &HostCall<'_>, plan: &mut Plan) -> Result<()> {
        let start = Instant::now();
        let plan_time = self.device.run(call, plan)?;
        let time = start.elapsed();
        let live = &self.counters.live;
        if let Some(plan_time) = if call.work == Work::Plan { Some(time) } else { plan_time } {
            live.plan_ns.add_time(plan_time);
            live.transfer_ns.add_time(time.saturating_sub(plan_time));
        } else {
            live.step_ns.add_time(time);
        }
        self.order.planned(&call.batch, plan);
        self.counters.planned(&call.batch, plan, &mut *self.device);
        Ok(())
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
    /// may not write the pool; nothing is written then. If a pool in a file does not take a row, because
    /// an earlier write failed, make the same call again; until then the rows that were not taken, of any
    /// of the layers, are errors when they are read.
    pub fn append(&mut self, batch: &Batch<'_>, layers: &[usize], fresh: &[&[u8]]) -> Result<()> {
        let call = Call::of(Work::Append, *batch, 0);
        let call = self.check(Call { layers, fresh: Some(fresh), ..call }, None)?;
        self.resources.check_append_rows(batch)?;
        if layers.is_empty() {
            return Ok(());
        }
        let start = Instant::now();
        self.device.append(&call)?;
        let (live, rows) = (&self.counters.live, Resources::fresh_ids(batch).count());
        live.append_ns.add_time(start.elapsed());
        live.appends.add(layers.len());
        live.appended_bytes.add(rows * layers.len() * self.resources.pool.format().bytes());
        Ok(())
    }
}
