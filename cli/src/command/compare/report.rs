//! The hit rates of `avsg compare`, which are written as JSON.

use serde::Serialize;

use crate::trace::Repeats;

/// The hit rates of all policies.
#[derive(Serialize)]
pub struct Report {
    pub trace: String,
    pub steps: usize,
    pub tokens: usize,
    pub k: usize,
    pub repeats: Repeats,
    pub slots: Vec<u32>,
    pub policies: Vec<PolicyRates>,
}

/// One policy at each S of the report.
#[derive(Serialize)]
pub struct PolicyRates {
    pub policy: String,
    pub at: Vec<At>,
}

#[derive(Serialize)]
pub struct At {
    pub slots: u32,
    /// In percent after the first step; null if no later step selects an id.
    pub hit_rate: Option<f64>,
    /// Mean misses of a step after the first.
    pub misses_per_step: Option<f64>,
    /// Whether this is the default rule of its table at this S.
    pub default: bool,
}

impl PolicyRates {
    fn at(&self, slots: u32) -> Option<&At> {
        self.at.iter().find(|at| at.slots == slots)
    }

    /// Returns the hit rate and whether a rule is the default, for a table's cell.
    pub fn cell(equal: &[Self], slots: u32) -> Option<(f64, bool)> {
        let default = equal.iter().any(|rates| rates.at(slots).is_some_and(|at| at.default));
        Some((equal[0].at(slots)?.hit_rate?, default))
    }

    /// Returns the table and the kind of its rule, and the rates: what neighbours on a line share.
    pub fn key(&self) -> (&str, Vec<(u32, Option<u64>)>) {
        let kind = self.policy.split(':').next().unwrap_or_default();
        let rates = self.at.iter().map(|at| (at.slots, at.hit_rate.map(f64::to_bits)));
        (kind, rates.collect())
    }
}
