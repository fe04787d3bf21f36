//! The comparison of the model with the figures that the paper states.

use anyhow::Result;
use serde::Serialize;

use avsg::device::params::{Lifetime, Params};

use super::constants::{Constants, Name, Start};
use super::ours::{Ours, Variant};
use super::paper::{self, POINTS, Paper, Quantity};
use super::{phase, stage_two};
use avsg_linker::ascend::soc::OF_THE_PAPER;

/// A figure of the paper and the modelled times at the same K and S, in microseconds.
#[derive(Serialize)]
pub struct PointRow {
    /// The quantity.
    pub what: &'static str,
    pub k: usize,
    pub slots: u32,
    /// The figure that the paper states.
    pub paper_us: f64,
    /// The modelled time of the paper's kernel.
    pub model_us: f64,
    /// Error of the model in percent of the paper's figure.
    pub error_percent: f64,
    /// The modelled time of the operator's own kernel, which is `avsg_plan` for Stage One and
    /// `avsg_step` for the whole kernel; none for the scalar merge.
    pub ours_us: Option<f64>,
}

/// The number of steps that fill the buffer, and the number of timed steps.
const STEPS: [usize; 2] = [24, 4];

/// Compares the model with the paper's figures, on the paper's chip and workload.
pub fn points(c: &Constants) -> Result<Vec<PointRow>> {
    let soc = &OF_THE_PAPER;
    let (prices, sync) = ([c.prices(soc)], c.get(Name::Syncall));
    let mut rows = Vec::new();
    for point in &POINTS {
        let (mut ours_us, mut model_us) = (None, paper::dual_pointer_us(point.k, c));
        if point.quantity != Quantity::DualPointer {
            let [warm, timed] = STEPS;
            let trace = paper::workload(point.k, warm + timed)?;
            // Two links per slot, and constant lifetimes, which are the cheapest to refresh.
            let params = Params {
                spread: 2,
                retries: 7,
                lifetime: Lifetime::Constant(127),
                ..Params::wide(u32::try_from(point.k)?, 1, point.slots)
            };
            let ours = Ours::new(&params, &trace, warm, &[1152])?;
            let theirs = Paper::new(point.slots, &trace, warm)?;
            let stage_one = soc.us(theirs.times(&prices)?[0].total);
            let copy = |misses| stage_two::us(c, soc, misses, &[1152]);
            (ours_us, model_us) = if point.quantity == Quantity::StageOne {
                // A plan in a launch of its own runs on one core.
                let plan = ours.times(Variant::Plan, 1, 1, &prices)?;
                let start = c.start_us(Start::OneCore);
                (Some(start + soc.us(plan[0].total)), start + stage_one)
            } else {
                let step = ours.times(Variant::Step, 1, soc.cores, &prices)?;
                let after = copy(ours.misses).max(soc.us(phase::stage_two(&step[0])));
                let us = soc.us(phase::stage_one(&step[0], prices[0].sync_all)) + sync + after;
                let start = c.start_us(Start::AllCores);
                (Some(start + us), start + stage_one + sync + copy(theirs.misses))
            };
        }
        let what = match point.quantity {
            Quantity::StageOne => "Stage One",
            Quantity::Kernel => "whole kernel",
            Quantity::DualPointer => "dual pointer",
        };
        let error_percent = 100.0 * (model_us / point.us - 1.0);
        let (k, slots, paper_us) = (point.k, point.slots, point.us);
        rows.push(PointRow { what, k, slots, paper_us, model_us, error_percent, ours_us });
    }
    Ok(rows)
}
