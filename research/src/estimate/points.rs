//! The comparison of the model with the figures that the paper states.

use anyhow::Result;
use serde::Serialize;

use super::constants::{Constants, Start};
use super::ours::{Cost, Variant, cost};
use super::paper::{self, POINTS, Quantity};
use super::stage_two;
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

/// Compares the model with the paper's figures, on the paper's chip and workload.
pub fn points(c: &Constants) -> Result<Vec<PointRow>> {
    let soc = &OF_THE_PAPER;
    let mut rows = Vec::new();
    for point in &POINTS {
        let mut ours_us = None;
        let model_us = if point.quantity == Quantity::DualPointer {
            paper::dual_pointer_us(point.k, c)
        } else {
            let [baseline, ours] = paper::profiles(point)?;
            let copy = stage_two::us(c, soc, ours.counts.misses, &[1152]);
            let cost = |variant| cost(&ours, variant, 1, soc.cores as usize);
            ours_us = Some(match point.quantity {
                Quantity::Kernel => cost(Variant::EMITTED).kernel_us(soc, c, copy),
                // A plan in a launch of its own runs on one core, and refreshes at once.
                _ => Cost { start: Start::OneCore, ..cost(Variant::AT_ONCE) }.stage_one_us(soc, c),
            });
            paper::model_us(point, &baseline, c)
        };
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
