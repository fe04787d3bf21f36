//! The traces of a command that takes several, or the layers of one, which are counted together.

use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::Params;
use serde::Serialize;

use super::output::count;
use super::trace_options::TraceOptions;
use crate::baseline::{ExactLru, HitCount, Policy, count_hits, count_operator_hits};
use crate::trace::{Repeats, Trace};

/// Traces of one N_q and one K with their names.
pub struct Traces(Vec<(String, Trace)>);

impl Traces {
    /// Takes one trace or more.
    pub fn new(traces: Vec<(String, Trace)>) -> Self {
        Self(traces)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Trace> {
        self.0.iter().map(|(_, trace)| trace)
    }

    pub fn name(&self, at: usize) -> &str {
        &self.0[at].0
    }

    /// Returns the first trace, which has the N_q and the K of all.
    pub fn first(&self) -> &Trace {
        &self.0[0].1
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the steps that count: one, and those after the first of each trace.
    pub fn steps(&self) -> usize {
        1 + self.iter().map(|trace| trace.steps - 1).sum::<usize>()
    }

    /// Returns the mean misses of a step after the first; `None` if no such step selects an id.
    pub fn misses_per_step(&self, count: &HitCount) -> Option<f64> {
        count.percent().map(|_| count.misses() as f64 / (self.steps() - 1) as f64)
    }

    /// Returns the repeats within the rows of all traces, and the place of the first one in its trace.
    pub fn repeats(&self) -> Repeats {
        self.iter().map(Trace::repeats).fold(Repeats::default(), |all, one| Repeats {
            ids: all.ids + one.ids,
            rows: all.rows + one.rows,
            first: all.first.or(one.first),
        })
    }
}

/// What was taken of the traces, as reports have it.
#[derive(Serialize)]
pub struct Taken {
    trace: String,
    /// What the axes of the file were taken for.
    taken: String,
    /// Steps after the first of each trace, and one.
    pub steps: usize,
    pub tokens: usize,
    pub k: usize,
    repeats: Repeats,
}

impl Taken {
    pub fn new(options: &TraceOptions, traces: &Traces) -> Self {
        let (first, steps, repeats) = (traces.first(), traces.steps(), traces.repeats());
        let taken = options.describe(first, traces.len());
        Self { trace: options.name(), taken, steps, tokens: first.tokens, k: first.k, repeats }
    }

    /// Returns the words about the axes, or with `is_short` the sizes alone.
    pub fn words(&self, is_short: bool) -> String {
        let Self { trace, taken, steps, tokens, k, .. } = self;
        let sizes = format!("N_q {tokens}, K {k}");
        format!("{trace}: {}, {}", count(*steps, "step"), if is_short { &sizes } else { taken })
    }
}

/// Counts the hits of exact LRU with this many slots.
pub fn lru_hits(traces: &Traces, slots: usize) -> Result<HitCount> {
    policy_hits(traces, |_| Ok(ExactLru::new(slots)?))
}

/// Counts the hits of a policy, which starts with an empty buffer on each trace.
pub fn policy_hits<P: Policy>(
    traces: &Traces,
    policy: impl Fn(&Trace) -> Result<P>,
) -> Result<HitCount> {
    traces.iter().map(|trace| Ok(count_hits(trace, &mut policy(trace)?))).sum()
}

/// Counts the hits of the operator on each trace, where it starts with an empty table.
pub fn operator_hits(traces: &Traces, params: &Params, machine: Machine) -> Result<Vec<HitCount>> {
    traces.iter().map(|trace| Ok(count_operator_hits(trace, params, machine)?)).collect()
}
