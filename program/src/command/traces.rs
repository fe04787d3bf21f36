//! The traces of a command that takes several, or the layers of one, which are counted together.

use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::Params;
use serde::Serialize;

use super::output::{count, show_during};
use super::trace_options::{Named, TraceOptions};
use crate::baseline::{
    HitCount, Policy, count_ceiling, count_hits, count_operator_hits, count_repeats,
};
use crate::trace::{Trace, TracePart};

/// Traces of one N_q and one K.
pub struct Traces {
    pub all: Vec<Named>,
    /// Steps of all files.
    recorded: usize,
}

impl Traces {
    /// Reads the parts of one file or more.
    pub fn new(options: &TraceOptions) -> Result<Self> {
        let (all, recorded) = options.read_all()?;
        Ok(Self { all, recorded })
    }

    pub fn iter(&self) -> impl Iterator<Item = &Trace> {
        self.all.iter().map(|named| &named.trace)
    }

    /// Counts the hits that no buffer can surpass.
    pub fn ceiling(&self) -> Result<HitCount> {
        let count = |trace| Ok(count_ceiling(trace)?);
        show_during("ceiling", || self.iter().map(count).sum())
    }

    /// Returns the hits of the two gathers without a buffer, of every selected row and without repeats.
    pub fn gathers(&self) -> [HitCount; 2] {
        let once: HitCount = self.iter().map(count_repeats).sum();
        [HitCount { hits: 0, first_hits: 0, ..once }, once]
    }

    /// Returns the first trace, which has the N_q and the K of all.
    pub fn first(&self) -> &Trace {
        &self.all[0].trace
    }

    /// Returns the layers of a file of which all are taken.
    pub fn layers(&self) -> usize {
        self.all.iter().filter_map(|named| named.part.layer).max().map_or(1, |last| last + 1)
    }

    /// Returns the steps that count: one, and those after the first of each trace.
    pub fn counted(&self) -> usize {
        1 + self.iter().map(|trace| trace.steps - 1).sum::<usize>()
    }

    /// Returns the mean misses of a step after the first; `None` if no such step selects an id.
    pub fn misses_per_step(&self, count: &HitCount) -> Option<f64> {
        count.percent().map(|_| count.misses() as f64 / (self.counted() - 1) as f64)
    }
}

/// What was taken of the traces, as reports have it.
#[derive(Serialize)]
pub struct Taken {
    trace: String,
    /// What the axes of the file were taken for.
    taken: String,
    /// What could be wrong with it; null if nothing.
    pub warning: Option<String>,
    /// Steps of all files.
    steps: usize,
    pub tokens: usize,
    pub k: usize,
    /// Ids that their row selected before.
    repeats: u64,
}

impl Taken {
    pub fn new(options: &TraceOptions, traces: &Traces) -> Self {
        let first = traces.first();
        let last = traces.all.last().map_or(TracePart::default(), |named| named.part);
        Self {
            trace: options.name(),
            taken: options.describe(first, last),
            warning: options.warning(first),
            steps: traces.recorded,
            tokens: first.tokens,
            k: first.k,
            repeats: traces.iter().map(|trace| trace.repeats().ids).sum(),
        }
    }

    pub fn words(&self) -> String {
        format!("{}: {}, {}", self.trace, count(self.steps, "step"), self.taken)
    }
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
