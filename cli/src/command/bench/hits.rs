//! Hits step by step, of tables and of policies alike.

use crate::baseline::{Belady, ExactLru, Policy};
use crate::trace::Trace;
use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::cpu::stage::StandaloneTable;
use avsg::device::params::Params;

/// Per step (hits, ids selected).
pub type Hits = Vec<(u64, u64)>;

fn selected(ids: &[i32]) -> u64 {
    ids.iter().filter(|&&id| id >= 0).count() as u64
}

/// A table's hits; nothing is invalidated.
pub fn of_table(trace: &Trace, params: &Params, machine: Machine) -> Result<Hits> {
    let mut trial = StandaloneTable::new(params)?;
    let step = |step: usize| {
        let ids = &trace.ids[step * trace.tokens * trace.k..][..trace.tokens * trace.k];
        let misses = trial.step_on(machine, ids, trace.tokens, -1) as u64;
        (selected(ids) - misses, selected(ids))
    };
    Ok((0..trace.steps).map(step).collect())
}

/// A policy's hits.
pub fn of_policy(trace: &Trace, policy: &mut dyn Policy) -> Hits {
    let mut misses = Vec::with_capacity(trace.k);
    let step = |step: usize| {
        policy.begin_step();
        let (mut hits, mut all) = (0, 0);
        for token in 0..trace.tokens {
            misses.clear();
            policy.token(trace.row(step, token), &mut misses);
            let n = selected(trace.row(step, token));
            (hits, all) = (hits + n.saturating_sub(misses.len() as u64), all + n);
        }
        (hits, all)
    };
    (0..trace.steps).map(step).collect()
}

/// Those of exact LRU and of Belady's optimum, the two ends of the scale.
pub fn of_scale(trace: &Trace, slots: usize) -> Result<[Hits; 2]> {
    let lru = of_policy(trace, &mut ExactLru::new(slots)?);
    Ok([lru, of_policy(trace, &mut Belady::new(trace, slots)?)])
}

/// The share of hits in percent, over these steps.
pub fn percent(steps: &[(u64, u64)]) -> f64 {
    let (hits, all) = steps.iter().fold((0, 0), |(h, n), step| (h + step.0, n + step.1));
    100.0 * hits as f64 / all.max(1) as f64
}

/// The share after the first step, which finds the buffer empty.
pub fn after_first(steps: &[(u64, u64)]) -> f64 {
    percent(steps.get(1..).unwrap_or_default())
}
