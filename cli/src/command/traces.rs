//! The traces of a command that takes several, or the layers of one, which are counted together.

use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::Params;

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
