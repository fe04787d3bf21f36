//! The paper's figures beside the model's.

use anyhow::Result;
use serde::Serialize;

use super::constants::Constants;
use super::ours::{Variant, cost};
use super::paper::{self, POINTS, What};
use super::stage_two;
use avsg_linker::soc::OF_THE_PAPER;

/// A figure of the paper, what the model makes of it, and of ours there.
#[derive(Serialize)]
pub struct PointRow {
    pub what: &'static str,
    pub k: usize,
    pub slots: u32,
    pub paper_us: f64,
    pub model_us: f64,
    pub error_percent: f64,
    pub ours_us: Option<f64>,
}

/// The paper's figures beside the model's, always on the paper's chip and workload.
pub fn points(c: &Constants) -> Result<Vec<PointRow>> {
    let soc = &OF_THE_PAPER;
    let mut rows = Vec::new();
    for point in &POINTS {
        let mut ours_us = None;
        let model_us = if point.what == What::DualPointer {
            paper::dual_pointer_us(point.k, c)
        } else {
            let [theirs, ours] = paper::profiles(point)?;
            let copy = stage_two::us(c, soc, ours.counts.misses, &[1152]);
            let cost = cost(&ours, Variant::EMITTED, 1, soc.cores as usize);
            ours_us = Some(match point.what {
                What::Kernel => cost.kernel_us(soc, c, copy),
                _ => cost.stage_one_us(soc, c),
            });
            paper::model_us(point, &theirs, c)
        };
        let what = match point.what {
            What::StageOne => "Stage One",
            What::Kernel => "whole kernel",
            What::DualPointer => "dual pointer",
        };
        let error_percent = 100.0 * (model_us / point.us - 1.0);
        let (k, slots, paper_us) = (point.k, point.slots, point.us);
        rows.push(PointRow { what, k, slots, paper_us, model_us, error_percent, ours_us });
    }
    Ok(rows)
}
