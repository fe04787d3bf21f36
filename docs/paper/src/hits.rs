//! Hits per step, for tables and for policies.

use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::cpu::standalone_table::StandaloneTable;
use avsg::device::params::Params;
use avsg::engine::MachineChoice;
use avsg::geometry;
use avsg_cli::baseline::Policy;
use avsg_cli::trace::Trace;

/// (hits, selected ids) of each step.
pub type Hits = Vec<(usize, usize)>;

fn selected(ids: &[i32]) -> usize {
    ids.iter().filter(|&&id| id >= 0).count()
}

/// Returns the hits of a table on `trace`; no step invalidates ids.
pub fn of_table(trace: &Trace, params: &Params) -> Result<Hits> {
    geometry::check(params)?;
    let machine = Machine::find(MachineChoice::Auto)?;
    let mut table = StandaloneTable::new(params)?;
    let step = |ids: &[i32]| {
        let misses = table.step_on(machine, ids, trace.tokens, -1);
        (selected(ids) - misses, selected(ids))
    };
    Ok(trace.ids.chunks_exact(trace.tokens * trace.k).map(step).collect())
}

/// Returns the hits of a policy on `trace`, which has one token per step.
pub fn of_policy(trace: &Trace, policy: &mut dyn Policy) -> Hits {
    let mut misses = Vec::with_capacity(trace.k);
    let step = |ids: &[i32]| {
        policy.begin_step();
        misses.clear();
        policy.token(ids, &mut misses);
        (selected(ids).saturating_sub(misses.len()), selected(ids))
    };
    trace.ids.chunks_exact(trace.k).map(step).collect()
}

/// Returns the share of hits over these steps in percent; NaN if nothing was selected, which tables
/// show as `-` and JSON as null.
pub fn percent(steps: &[(usize, usize)]) -> f64 {
    let (hits, all) = steps.iter().fold((0, 0), |(h, n), step| (h + step.0, n + step.1));
    100.0 * hits as f64 / all as f64
}
