//! The hit rates of `avsg compare`, which are written as JSON, and the advice that follows from them.

use avsg::device::params::Params;
use serde::Serialize;

use crate::baseline::HitCount;
use crate::command::traces::{Taken, Traces};

/// The hit rates of all policies.
#[derive(Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub taken: Taken,
    pub slots: Vec<u32>,
    pub policies: Vec<PolicyRates>,
    /// What to take at each S; nothing if no step after the first selects an id.
    pub advice: Vec<Advice>,
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
}

/// The rule to take at one S.
#[derive(Debug, PartialEq, Serialize)]
pub struct Advice {
    pub slots: u32,
    /// The lifetime rule.
    pub lifetime: String,
    /// In percent after the first step.
    pub hit_rate: f64,
    /// Mean misses of a step after the first.
    pub misses_per_step: f64,
}

impl Advice {
    /// Returns the advice to take a rule with these hits; `None` if no step after the first selects an id.
    pub fn of(best: Params, hits: &HitCount, traces: &Traces) -> Option<Self> {
        Some(Self {
            slots: best.slots,
            lifetime: best.lifetime.to_string(),
            hit_rate: hits.percent()?,
            misses_per_step: traces.misses_per_step(hits)?,
        })
    }
}

impl Report {
    /// Returns the mean misses of a step after the first of a policy at the first S.
    pub fn misses(&self, policy: &str) -> Option<f64> {
        self.policies.iter().find(|rates| rates.policy == policy)?.at.first()?.misses_per_step
    }

    /// Returns the least S from which on every larger one copies as many rows with the advised rule;
    /// `None` if that is the largest.
    pub fn enough(&self) -> Option<u32> {
        let last = self.advice.last()?;
        let mut advice = self.advice.iter();
        let least = advice.find(|advice| advice.misses_per_step <= last.misses_per_step)?;
        (least.slots < last.slots).then_some(least.slots)
    }
}

impl PolicyRates {
    /// Returns the kind of the rule, and the rates: what neighbours on a line share.
    pub fn key(&self) -> (&str, Vec<(u32, Option<u64>)>) {
        let kind = self.policy.split(':').next().unwrap_or_default();
        let rates = self.at.iter().map(|at| (at.slots, at.hit_rate.map(f64::to_bits)));
        (kind, rates.collect())
    }
}
