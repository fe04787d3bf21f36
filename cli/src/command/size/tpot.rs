//! The model of the time per output token: a step takes its time without offload, and then waits until
//! the rows that it misses have crossed the link. The time of matching is not in it.

use anyhow::Result;
use avsg::Error;
use clap::Args;
use serde::Serialize;

use super::least::Wanted;
use crate::trace::Trace;

/// Options of the model.
#[derive(Args, Clone, Debug)]
pub struct ModelOptions {
    /// Find the least S with this time per output token in milliseconds, by the model
    #[arg(long, value_name = "MS", requires = "step_ms")]
    tpot_ms: Option<f64>,
    /// Milliseconds of a decode step of the whole batch without offload; shows the model's time per
    /// output token
    #[arg(long, value_name = "MS", requires = "link_gbs")]
    step_ms: Option<f64>,
    /// Bandwidth of the link to host memory in GB/s
    #[arg(long, value_name = "GB/S", requires = "step_ms")]
    link_gbs: Option<f64>,
    /// Tokens that a request gets per step, 1 to N_q [default: the mean growth of the trace's `stable`,
    /// or N_q without it]
    #[arg(long, value_name = "TOKENS", requires = "step_ms")]
    accepted: Option<f64>,
}

/// The constants of the model.
#[derive(Serialize)]
pub struct Model {
    /// What the figures are.
    label: &'static str,
    pub step_ms: f64,
    pub link_gbs: f64,
    /// Tokens that a request gets per step.
    pub accepted: f64,
    #[serde(skip)]
    tpot_ms: Option<f64>,
}

impl ModelOptions {
    /// Returns the model, or `None` if no time of a step is given.
    pub fn model(&self, trace: &Trace) -> Result<Option<Model>> {
        let (Some(step_ms), Some(link_gbs)) = (self.step_ms, self.link_gbs) else {
            return Ok(None);
        };
        let tpot = self.tpot_ms.map(|ms| ("--tpot-ms", ms));
        let positive = [("--step-ms", step_ms), ("--link-gbs", link_gbs)].into_iter().chain(tpot);
        for (what, value) in positive {
            if !(value > 0.0 && value.is_finite()) {
                let limit = "it must be above 0";
                return Err(Error::invalid(what, value, limit, "pass 50, for example").into());
            }
        }
        let most = trace.tokens as f64;
        let accepted =
            self.accepted.unwrap_or_else(|| growth(trace).unwrap_or(most).clamp(1.0, most));
        if !(1.0..=most).contains(&accepted) {
            let limit = format!("it must be 1 to N_q = {}", trace.tokens);
            let remedy = "pass the mean number of accepted drafts plus 1";
            return Err(Error::invalid("--accepted", accepted, limit, remedy).into());
        }
        let label = "a model, not a measurement";
        Ok(Some(Model { label, step_ms, link_gbs, accepted, tpot_ms: self.tpot_ms }))
    }
}

impl Model {
    /// Returns the time per output token if a step copies `bytes`.
    pub fn tpot_ms(&self, bytes: f64) -> f64 {
        (self.step_ms + bytes / (self.link_gbs * 1e6)) / self.accepted
    }

    /// Returns the hit rate that the wanted time needs if a step selects `selected` bytes.
    pub fn wanted(&self, selected: f64) -> Option<Wanted> {
        let tpot_ms = self.tpot_ms?;
        let copied = (tpot_ms * self.accepted - self.step_ms) * self.link_gbs * 1e6;
        // Without a link that is fast enough for nothing to copy, no hit rate will do.
        let rate = (copied >= 0.0).then(|| (100.0 - 100.0 * copied / selected).max(0.0));
        let hit_rate = rate.filter(|rate| rate.is_finite());
        Some(Wanted { tpot_ms: Some(tpot_ms), hit_rate })
    }
}

/// Returns by how much `stable` grows per step; `None` if it is not known in the first and last step.
fn growth(trace: &Trace) -> Option<f64> {
    let stable = trace.stable.as_ref()?;
    let (first, last) = (*stable.first()?, *stable.last()?);
    let known = first >= 0 && last > first;
    known.then(|| f64::from(last - first) / (trace.steps - 1) as f64)
}
