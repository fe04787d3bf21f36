//! The figures at one S.

use serde::Serialize;

use crate::command::geometry::Rule;

/// The operator, measured at one S.
#[derive(Serialize)]
pub struct Point {
    pub slots: u32,
    #[serde(flatten)]
    pub rule: Rule,
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
