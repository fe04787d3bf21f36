//! The figures of `avsg size`, which are written as JSON.

use serde::Serialize;

use super::deployment::Deployment;
use super::least::Least;
use super::point::{Curve, Point};
use super::tpot::Model;
use crate::trace::Repeats;

/// The figures of a trace and a deployment. Hit rates are in percent after the first step, and null if
/// no later step selects an id.
#[derive(Serialize)]
pub struct Report {
    pub trace: String,
    pub steps: usize,
    pub tokens: usize,
    pub k: usize,
    pub distinct_ids: usize,
    pub repeats: Repeats,
    pub deployment: Deployment,
    /// Bytes of the rows that a step selects, in all layers and requests: what a step copies without a
    /// buffer. Null for a trace of one step.
    pub selected_bytes_per_step: Option<f64>,
    pub model: Option<Model>,
    pub points: Vec<Point>,
    pub lru_curve: Vec<Curve>,
    pub least: Vec<Least>,
}
