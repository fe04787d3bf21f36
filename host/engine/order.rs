//! Which plans' rows each layer holds: whether a plan may be transferred to a layer now.
//!
//! A table says what the plans of a state make of its slots, one after the other. A layer's slots hold
//! that only if the plans are transferred to the layer in the same order and none that missed a row is
//! left out. One that comes after a newer one would overwrite rows that the table promises; one whose
//! forerunner is missing would return slots that were never filled. Neither would be seen in the plan, so
//! both are refused here. Layers do not depend on each other: plan t + 1 may be made, and transferred
//! to the layers that have plan t, while plan t is still on its way to others.
//!
//! Of what a caller's stream plans the host sees nothing: there the order is the caller's.

use crate::batch::Batch;
use crate::plan::Plan;
use crate::{Error, Result};

/// The latest plan of a state.
#[derive(Clone, Copy, Default)]
struct Latest {
    /// The latest that missed a row; 0: none since the state was cold.
    number: u64,
    generation: i32,
}

pub(super) struct Order {
    /// Plans so far.
    plans: u64,
    /// The device's count of failures: each leaves every table cold.
    epoch: u64,
    latest: Box<[Latest]>,
    /// For each layer and state, the latest plan whose rows it got.
    holds: Box<[u64]>,
}

impl Order {
    pub fn new(states: usize, layers: usize) -> Self {
        Self {
            plans: 0,
            epoch: 0,
            latest: vec![Latest::default(); states].into(),
            holds: vec![0; states * layers].into(),
        }
    }

    /// Before a host's plan: a failure in between has made every table cold.
    pub fn begin(&mut self, epoch: u64) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.latest.fill(Latest::default());
        }
    }

    /// A stream plans states that the host does not see: nothing is known of them any more.
    pub fn forget(&mut self) {
        self.epoch = u64::MAX;
    }

    /// The plan whose rows a layer must hold before a checked batch's next one comes; 0: any, as the
    /// state starts cold.
    fn before(&self, batch: &Batch<'_>, request: usize) -> u64 {
        let latest = usize::try_from(batch.state[request]).map(|state| self.latest[state]);
        latest.map_or(0, |latest| {
            if latest.generation == batch.generation[request] { latest.number } else { 0 }
        })
    }

    fn holds(&self, layer: usize, state: usize) -> u64 {
        self.holds[layer * self.latest.len() + state]
    }

    /// Whether a batch that is not planned yet may go to a layer at once.
    pub fn check_next(&self, batch: &Batch<'_>, layer: usize) -> Result<()> {
        for (request, &state) in batch.state.iter().enumerate() {
            let Ok(state) = usize::try_from(state) else { continue };
            let before = self.before(batch, request);
            if self.holds(layer, state) < before {
                return Err(missing(self.plans + 1, layer, state, before));
            }
        }
        Ok(())
    }

    /// Numbers a plan that was just made from a batch.
    pub fn planned(&mut self, batch: &Batch<'_>, plan: &mut Plan) {
        self.plans += 1;
        plan.number = self.plans;
        for (request, &state) in batch.state.iter().enumerate() {
            let Ok(state) = usize::try_from(state) else { continue };
            plan.before[request] = self.before(batch, request);
            let number = if plan.missed(request) { plan.number } else { plan.before[request] };
            self.latest[state] = Latest { number, generation: batch.generation[request] };
        }
    }

    /// Whether a plan may go to a layer.
    pub fn check(&self, plan: &Plan, layer: usize) -> Result<()> {
        for (request, &state) in plan.state[..plan.requests].iter().enumerate() {
            let Ok(state) = usize::try_from(state) else { continue };
            let (holds, before) = (self.holds(layer, state), plan.before[request]);
            if holds > plan.number {
                return Err(too_old(plan.number, layer, state, holds));
            }
            if holds < before {
                return Err(missing(plan.number, layer, state, before));
            }
        }
        Ok(())
    }

    /// A plan has gone to a layer.
    pub fn transferred(&mut self, plan: &Plan, layer: usize) {
        for (request, &state) in plan.state[..plan.requests].iter().enumerate() {
            let Ok(state) = usize::try_from(state) else { continue };
            if plan.missed(request) {
                self.holds[layer * self.latest.len() + state] = plan.number;
            }
        }
    }
}

fn too_old(number: u64, layer: usize, state: usize, holds: u64) -> Error {
    let limit = format!("layer {layer} has the rows of plan {holds} for state {state} already");
    let remedy = "transfer plans of one state in the order in which they were planned";
    Error::invalid("plan number", number, limit, remedy)
}

fn missing(number: u64, layer: usize, state: usize, before: u64) -> Error {
    let limit = format!("layer {layer} lacks the rows of plan {before} for state {state}");
    let remedy = "transfer that one first, or give the request a new generation";
    Error::invalid("plan number", number, limit, remedy)
}
