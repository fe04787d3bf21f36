//! The comparison of the model with the figures that the paper states.

use anyhow::Result;
use serde::Serialize;

use avsg::device::params::{Lifetime, Params};
use avsg_linker::ascend::soc::OF_THE_PAPER;

use super::ours::{Ours, Variant};
use super::paper::{self, Paper};
use super::{phase, stage_two};
use crate::published::{TIMES, Timed};
use avsg_cli::constants::{Constants, Name};

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

/// The steps that fill the buffer.
const WARM: usize = 24;
/// The steps that are timed.
const STEPS: usize = 4;

/// Compares the model with the paper's figures, on the paper's chip and workload.
pub fn points(c: &Constants) -> Result<Vec<PointRow>> {
    let soc = &OF_THE_PAPER;
    let (prices, sync) = ([c.prices(soc)], c.get(Name::Syncall));
    let mut rows = Vec::new();
    for (timed, k, slots, paper_us) in TIMES {
        let (mut ours_us, mut model_us) = (None, paper::dual_pointer_us(k, c));
        if timed != Timed::DualPointer {
            let trace = paper::workload(k, WARM + STEPS)?;
            // Two links per slot, and constant lifetimes, which are the cheapest to refresh.
            let params = Params {
                lifetime: Lifetime::Constant(127),
                ..Params::compact(u32::try_from(k)?, 1, slots)
            };
            let ours = Ours::new(&params, &trace, WARM, &[1152])?;
            let theirs = Paper::new(slots, &trace, WARM)?;
            let stage_one = soc.us(theirs.times(&prices)?[0].total);
            let copy = |misses| stage_two::us(c, soc, misses, &[1152]);
            (ours_us, model_us) = if timed == Timed::StageOne {
                // A plan in a launch of its own runs on one core.
                let plan = ours.times(Variant::Plan, 1, 1, &prices)?;
                let start = c.get(Name::Launch);
                (Some(start + soc.us(plan[0].total)), start + stage_one)
            } else {
                let step = ours.times(Variant::Step, 1, soc.cores, &prices)?;
                let after = copy(ours.misses).max(soc.us(phase::stage_two(&step[0])));
                let us = soc.us(phase::stage_one(&step[0], prices[0].sync_all)) + sync + after;
                let start = c.get(Name::LaunchAll);
                (Some(start + us), start + stage_one + sync + copy(theirs.misses))
            };
        }
        let what = match timed {
            Timed::StageOne => "Stage One",
            Timed::Kernel => "whole kernel",
            Timed::DualPointer => "dual pointer",
        };
        let error_percent = 100.0 * (model_us / paper_us - 1.0);
        rows.push(PointRow { what, k, slots, paper_us, model_us, error_percent, ours_us });
    }
    Ok(rows)
}
