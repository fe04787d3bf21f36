//! The least S for a wish.

use serde::Serialize;

use super::point::{Curve, Point};

/// A wished time per output token or hit rate.
#[derive(Clone, Copy, Serialize)]
pub struct Wanted {
    /// The wished time, or `None` if a hit rate is wished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpot_ms: Option<f64>,
    /// The wished hit rate, or the one that the wished time needs; `None` if no hit rate would do.
    pub hit_rate: Option<f64>,
}

/// The answer to a wish.
#[derive(Serialize)]
pub struct Least {
    pub wanted: Wanted,
    /// The least S that was measured with this hit rate.
    pub slots: Option<u32>,
    /// The least multiple of 64 with which exact LRU has this hit rate.
    pub lru_slots: Option<usize>,
}

/// A rounding error in the hit rate that a time needs must not exclude an S that has that time.
const TOLERANCE: f64 = 1e-9;

impl Wanted {
    /// Returns the answer from the measured S and the curve of exact LRU, both in ascending order.
    pub fn answer(self, points: &[Point], curve: &[Curve]) -> Least {
        let enough = |rate: f64| self.hit_rate.is_some_and(|wanted| rate >= wanted - TOLERANCE);
        let measured = points.iter().find(|point| point.hit_rate.is_some_and(enough));
        let computed = curve.iter().find(|point| enough(point.hit_rate));
        Least {
            wanted: self,
            slots: measured.map(|point| point.slots),
            lru_slots: computed.map(|point| point.slots),
        }
    }
}
