//! Checks the order of transfers: which plans' rows each layer holds.
//!
//! A state's table describes its slots after all plans so far. The slots of a layer agree with it
//! only if every plan that missed a row is transferred to the layer, in the order of the plans. A
//! transfer after that of a newer plan would overwrite rows that the table lists; a transfer
//! without that of an older plan would return slots that were never filled. The plan itself shows
//! neither, so both are refused here. Layers are independent: plan t + 1 may be made, and
//! transferred to layers that hold plan t, before other layers hold plan t. So are indexers, each of
//! which has tables and layers of its own.
//!
//! The host does not see the states that a caller's stream plans, so that order is up to the
//! caller.

use std::collections::BTreeSet;

use crate::call::{Batch, named};
use crate::indexers::Indexers;
use crate::plan::{Before, Failure, Plan};
use crate::system::reserve;
use crate::{Result, ensure, invalid};

/// The last plan of a state.
#[derive(Clone, Copy, Default)]
struct Latest {
    /// Number of the last plan that missed a row; 0 if there is none since the state was cold.
    number: u64,
    /// Number of the last plan, whether it missed a row or not.
    last: u64,
    generation: i32,
    /// Number of the first plan since the state was cold; 0 if there is none.
    first: u64,
    /// `first` of the plans of the last request of which a row was not whole, and that layer and row; 0 if there
    /// was none.
    lost: (u64, u32, u32),
    /// Number of the plan of which a transfer is under way; 0 if there is none.
    under_way: u64,
}

/// What came after a plan of a state.
pub(super) enum After {
    /// No plan.
    Nothing,
    /// A plan, which needs the rows of all plans before it since the state was cold.
    Plan,
    /// The state was emptied.
    Cold,
}

pub(super) struct TransferOrder {
    /// Number of plans made so far.
    plans: u64,
    /// The device's epoch when `latest` was last valid; a failure raises it and leaves every table
    /// cold.
    epoch: u64,
    /// `[indexers, states]`, the last plan of each table.
    latest: Box<[Latest]>,
    /// `[layers, states]`, the number of the last plan whose rows were transferred.
    holds: Box<[u64]>,
    states: usize,
}

impl Latest {
    /// Notes that the state is cold.
    fn empty(&mut self) {
        let Self { lost, under_way, .. } = *self;
        *self = Self { lost, under_way, ..Self::default() };
    }
}

impl TransferOrder {
    pub fn new(states: usize, indexers: usize, layers: usize) -> Result<Self> {
        const WHAT: &str = "order of plans";
        let tables = indexers.saturating_mul(states);
        let latest = reserve::filled(WHAT, tables, Latest::default())?.into();
        let holds = reserve::filled(WHAT, states.saturating_mul(layers), 0)?.into();
        Ok(Self { plans: 0, epoch: 0, latest, holds, states })
    }

    /// Starts a plan: if the device's epoch has changed, every state counts as cold. Returns
    /// whether it has.
    pub fn begin(&mut self, epoch: u64) -> bool {
        let changed = self.epoch != epoch;
        if changed {
            self.epoch = epoch;
            self.latest.iter_mut().for_each(|latest| latest.empty());
        }
        changed
    }

    /// Forgets the last plan of every table, because a caller's stream plans states that the host
    /// does not see.
    pub fn forget(&mut self) {
        self.epoch = u64::MAX;
    }

    /// Returns the last plan of a state.
    fn latest(&self, indexer: usize, state: usize) -> &Latest {
        &self.latest[indexer * self.states + state]
    }

    fn latest_mut(&mut self, indexer: usize, state: usize) -> &mut Latest {
        &mut self.latest[indexer * self.states + state]
    }

    /// Returns the number of the last plan of a state in a generation that missed a row, which a layer
    /// must hold before the next plan is transferred; 0 if the state starts cold.
    fn required(&self, indexer: usize, state: usize, generation: i32) -> u64 {
        let latest = self.latest(indexer, state);
        if latest.generation == generation { latest.number } else { 0 }
    }

    /// Returns whether a plan in a generation empties a state.
    pub fn empties(&self, indexer: usize, state: usize, generation: i32) -> bool {
        self.latest(indexer, state).generation != generation
    }

    /// Checks that layers hold the rows that a plan requires of them, of each state with a number. An error names
    /// every layer and state that lacks those of the same plan.
    fn check_holds(
        &self,
        number: u64,
        layers: &[usize],
        indexers: &Indexers,
        required: impl Iterator<Item = (usize, u64)> + Clone,
    ) -> Result<()> {
        let lacks = |layer, state, needed| self.holds[layer * self.states + state] < needed;
        for &layer in layers {
            let lacking = |&(state, needed): &(usize, u64)| lacks(layer, state, needed);
            let Some((_, needed)) = required.clone().find(lacking) else { continue };
            let all = indexers.layers_of(indexers.of(layer), self.holds.len() / self.states);
            let same = required.filter(|&(_, other)| other == needed).map(|(state, _)| state);
            let pairs = all.flat_map(|layer| same.clone().map(move |state| (layer, state)));
            let pairs = pairs.filter(|&(layer, state)| lacks(layer, state, needed));
            let (layers, states): (BTreeSet<_>, BTreeSet<_>) = pairs.unzip();
            let (layers, states) = (Vec::from_iter(layers), Vec::from_iter(states));
            return Err(invalid!("plan number" is number, but
                "layers {layers:?} lack the rows of plan {needed} for states {states:?}";
                "plan once per indexer, transfer per layer: transfer that one first, or give the \
                 requests a new generation"));
        }
        Ok(())
    }

    /// Checks that a batch may be transferred to layers as soon as it is planned. The plans in `gone` that no
    /// newer plan needs are discarded before.
    pub fn check_next<'a>(
        &self,
        batch: &Batch<'_>,
        layers: &[usize],
        indexers: &Indexers,
        gone: impl Iterator<Item = &'a Plan> + Clone,
    ) -> Result<()> {
        let required = named(batch.state).map(|(request, state)| {
            let latest = self.latest(batch.indexer, state);
            let mut number = self.required(batch.indexer, state, batch.generation[request]);
            let mut last = latest.last;
            let newest = |last| {
                let mut same = gone.clone().filter(move |plan| plan.number == last);
                same.find_map(|plan| Some((plan, plan.named().find(|of| of.1 == state)?.0)))
            };
            while let Some((plan, request)) = newest(last) {
                number = number.min(plan.before[request].required);
                last = plan.before[request].previous;
            }
            (state, number)
        });
        self.check_holds(self.plans + 1, layers, indexers, required)
    }

    /// Gives a new plan its number and notes it as the last plan of its states.
    pub fn planned(&mut self, batch: &Batch<'_>, plan: &mut Plan) {
        self.plans += 1;
        plan.set_number(self.plans);
        for (request, state) in named(batch.state) {
            let generation = batch.generation[request];
            let required = self.required(batch.indexer, state, generation);
            let number = if plan.missed(request) { plan.number } else { required };
            let latest = self.latest_mut(batch.indexer, state);
            if latest.first == 0 || latest.generation != generation {
                latest.first = plan.number;
            }
            let (previous, first) = (latest.last, latest.first);
            plan.before[request] = Before { required, previous, first };
            (latest.number, latest.last, latest.generation) = (number, plan.number, generation);
        }
    }

    /// Returns what came after a plan of a state.
    pub fn after(&self, plan: &Plan, request: usize, state: usize) -> After {
        let latest = self.latest(plan.indexer, state);
        match latest.last {
            _ if latest.first != plan.before[request].first => After::Cold,
            last if last == plan.number => After::Nothing,
            _ => After::Plan,
        }
    }

    /// Checks that no plan came after a plan in a state that it missed a row of, so that it may be discarded. For a
    /// plan that no layer has and that another batch is going to be planned into, `cold` has the states that are
    /// going to be emptied; what emptied a state does not count then.
    pub fn check_last(&self, plan: &Plan, cold: Option<&[bool]>) -> Result<()> {
        let mut missed = plan.named().filter(|&(request, _)| plan.missed(request));
        let has_newer = |&(request, state): &(usize, usize)| match cold {
            None => self.latest(plan.indexer, state).last != plan.number,
            Some(cold) => !cold[state] && matches!(self.after(plan, request, state), After::Plan),
        };
        let Some((_, state)) = missed.find(has_newer) else { return Ok(()) };
        let last = self.latest(plan.indexer, state).last;
        let limit = match last {
            _ if cold.is_some() => {
                format!("no layer has its rows, and plan {last} of state {state} came after it")
            }
            0 => format!("state {state} was emptied, or planned in a stream, after it"),
            _ => format!("plan {last} of state {state} came after it"),
        };
        let remedy = match cold {
            Some(_) => {
                "transfer it before another batch is planned into it, discard the newest plan first, or \
                 give the request a new generation"
            }
            None => "discard the newest plan first, or give the request a new generation",
        };
        Err(invalid!("plan number" is plan.number, but "{limit}"; remedy))
    }

    /// Forgets a plan of a state: if it was the last one, the plans before it are.
    pub fn discarded(&mut self, plan: &Plan, request: usize, state: usize) {
        let latest = self.latest_mut(plan.indexer, state);
        if latest.last == plan.number {
            // The number may be lower already, if a newer plan that was discarded started cold.
            latest.number = latest.number.min(plan.before[request].required);
            latest.last = plan.before[request].previous;
        }
    }

    /// Checks that every layer holds the rows of a state's last plans in a generation.
    pub fn check_complete(&self, state: usize, generation: i32, indexers: &Indexers) -> Result<()> {
        for layer in 0..self.holds.len() / self.states {
            let required = self.required(indexers.of(layer), state, generation);
            self.check_holds(self.plans + 1, &[layer], indexers, [(state, required)].into_iter())?;
        }
        Ok(())
    }

    /// Notes that a state became a copy, as if a plan had filled it and every layer had its rows.
    /// Older plans of the state are too old from then on.
    pub fn filled(&mut self, state: usize, generation: i32) {
        self.plans += 1;
        let number = self.plans;
        for latest in self.latest.iter_mut().skip(state).step_by(self.states) {
            *latest = Latest { number, last: number, generation, first: number, ..*latest };
        }
        self.holds.iter_mut().skip(state).step_by(self.states).for_each(|holds| *holds = number);
    }

    /// Leaves those requests out of a plan that another plan of theirs has lost.
    pub fn leave_out_lost(&self, plan: &mut Plan) {
        for request in 0..plan.requests {
            let Ok(state) = usize::try_from(plan.state[request]) else { continue };
            let (first, layer, row) = self.latest(plan.indexer, state).lost;
            if !plan.is_left_out(request) && first == plan.before[request].first {
                plan.fail(request, layer as usize, row as usize);
            }
        }
    }

    /// Notes that a request of a plan is lost, and with it all plans since its state was cold. Returns
    /// whether the state's last plan is one of them; then the state's next plan starts cold.
    pub fn lose(&mut self, plan: &Plan, Failure { request, layer, row, .. }: Failure) -> bool {
        let (first, state) = (plan.before[request].first, plan.state[request] as usize);
        let latest = self.latest_mut(plan.indexer, state);
        if latest.lost.0 < first {
            // Rows are counted by 32 bits, and layers are fewer.
            latest.lost = (first, layer as u32, row as u32);
        }
        let current = latest.first == first;
        if current {
            latest.empty();
        }
        current
    }

    /// Checks that a plan may be transferred to layers.
    pub fn check(&self, plan: &Plan, layers: &[usize], indexers: &Indexers) -> Result<()> {
        let named = plan.named().filter(|&(request, _)| !plan.is_left_out(request));
        for (&layer, (_, state)) in
            layers.iter().flat_map(|layer| named.clone().map(move |of| (layer, of)))
        {
            let holds = self.holds[layer * self.states + state];
            ensure!(holds <= plan.number, "plan number" is plan.number, but
                "layer {layer} has the rows of plan {holds} for state {state} already";
                "transfer plans of one state in the order in which they were planned");
        }
        let required = named.map(|(request, state)| (state, plan.before[request].required));
        self.check_holds(plan.number, layers, indexers, required)
    }

    /// Checks that no transfer of some states is under way, apart from that of the plan with a number.
    pub fn check_under_way(
        &self,
        indexer: usize,
        states: impl Iterator<Item = usize>,
        number: u64,
    ) -> Result<()> {
        for state in states {
            let under_way = self.latest(indexer, state).under_way;
            ensure!(under_way == 0 || under_way == number, "state" is state, but
                "a transfer of its plan is under way, for indexer {indexer}";
                "wait for that plan first, and repeat the call");
        }
        Ok(())
    }

    /// Notes that a transfer of a plan's states is under way, by the number of the plan, or that none is, by 0.
    pub fn set_under_way(&mut self, plan: &Plan, number: u64) {
        plan.named().for_each(|(_, state)| self.latest_mut(plan.indexer, state).under_way = number);
    }

    /// Notes that a plan was transferred to a layer.
    pub fn transferred(&mut self, plan: &Plan, layer: usize) {
        for (request, state) in plan.named() {
            if plan.missed(request) {
                self.holds[layer * self.states + state] = plan.number;
            }
        }
    }
}
