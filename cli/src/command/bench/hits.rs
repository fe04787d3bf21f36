//! Hits per step, for tables and for policies.

use crate::baseline::{Belady, ExactLru, Policy};
use crate::trace::Trace;
use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::cpu::stage::StandaloneTable;
use avsg::device::params::Params;

/// (hits, selected ids) of each step.
pub type Hits = Vec<(u64, u64)>;

fn selected(ids: &[i32]) -> u64 {
    ids.iter().filter(|&&id| id >= 0).count() as u64
}

/// Returns the hits of a table on `trace`; no step invalidates ids.
pub fn of_table(trace: &Trace, params: &Params, machine: Machine) -> Result<Hits> {
    let mut table = StandaloneTable::new(params)?;
    let step = |step: usize| {
        let ids = &trace.ids[step * trace.tokens * trace.k..][..trace.tokens * trace.k];
        let misses = table.step_on(machine, ids, trace.tokens, -1) as u64;
        (selected(ids) - misses, selected(ids))
    };
    Ok((0..trace.steps).map(step).collect())
}

/// Returns the hits of a policy on `trace`.
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

/// Returns the hits of exact LRU and of Belady's optimum on `trace`.
pub fn of_lru_and_belady(trace: &Trace, slots: usize) -> Result<[Hits; 2]> {
    let lru = of_policy(trace, &mut ExactLru::new(slots)?);
    Ok([lru, of_policy(trace, &mut Belady::new(trace, slots)?)])
}

/// Returns the share of hits over these steps in percent; NaN if nothing was selected, which tables
/// show as `-` and JSON as null.
pub fn percent(steps: &[(u64, u64)]) -> f64 {
    let (hits, all) = steps.iter().fold((0, 0), |(h, n), step| (h + step.0, n + step.1));
    100.0 * hits as f64 / all as f64
}

/// Returns the share of hits after the first step, which starts with an empty buffer, in percent.
pub fn after_first(steps: &[(u64, u64)]) -> f64 {
    percent(steps.get(1..).unwrap_or_default())
}
