//! The operator's own table, counted like the policies that it is compared with.

use super::HitCount;
use crate::trace::Trace;
use avsg::Result;
use avsg::cpu::machine::Machine;
use avsg::cpu::standalone_table::StandaloneTable;
use avsg::device::params::Params;

/// Replays `trace` on an empty table and counts the hits. K and N_q of `params` must be those of the
/// trace. Each step invalidates the ids from its `stable` on, as in an engine.
pub fn count_operator_hits(trace: &Trace, params: &Params, machine: Machine) -> Result<HitCount> {
    let mut table = StandaloneTable::new(params)?;
    let mut count = HitCount::default();
    for (step, ids) in trace.ids.chunks_exact(trace.tokens * trace.k).enumerate() {
        let stable = trace.stable.as_ref().map_or(-1, |stable| stable[step]);
        let misses = table.step_on(machine, ids, trace.tokens, stable) as u64;
        let selected = ids.iter().filter(|&&id| id >= 0).count() as u64;
        count.add(step, selected, selected - misses);
    }
    Ok(count)
}
