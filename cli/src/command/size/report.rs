//! The figures of `avsg size`, which are written as JSON.

use serde::Serialize;

use super::deployment::Deployment;
use super::least::Least;
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

/// The operator, measured at one S.
#[derive(Serialize)]
pub struct Point {
    pub slots: u32,
    pub hit_rate: Option<f64>,
    pub lru_hit_rate: Option<f64>,
    /// Mean misses of a step after the first, of one layer and request.
    pub misses_per_step: Option<f64>,
    /// Bytes that a step copies, in all layers and requests.
    pub bytes_per_step: Option<f64>,
    /// Slots, tables and working columns of all layers and requests.
    pub device_bytes: usize,
    /// Time per output token by the model.
    pub tpot_ms: Option<f64>,
}

/// Exact LRU at one S.
#[derive(Serialize)]
pub struct Curve {
    pub slots: usize,
    pub hit_rate: f64,
}
