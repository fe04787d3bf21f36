//! The preparation of a table for a step: it may be emptied, and loses rows that were not final.
//!
//! `stable` is the number of tokens whose KV was final before this forward pass. The paper
//! invalidates at the end of a step (Alg. 4, lines 9 and 10) and leaves stale hits when N is chosen
//! wrongly. Invalidation at the start of a step keeps accepted drafts and handles any rollback. It
//! scans the slots, because a slot without a link (an orphan) holds an id too. The header bounds
//! the ids that a table may hold, so a step that rejected no draft scans nothing.

use crate::machine::Machine;
use crate::machine::control::{sweep, when};
use crate::machine::phase::Phase;
use crate::table::params::Params;
use crate::table::state::{DEAD, EMPTY, INVALID, State, header};

/// Empties the table if its generation is not the request's. So a request that joins, leaves, is
/// preempted or is recomputed needs no launch of its own.
#[inline(always)]
pub fn reset<M: Machine>(m: M, p: &Params, state: &mut State<'_, M>, generation: M::Scalar) {
    let at = m.scalar(header::GENERATION);
    let known = m.name_scalar("generation", m.read_output(&state.header, at));
    m.phase(Phase::Reset, "an empty table for another generation");
    when!(m, m.ne(known, generation), || {
        sweep!(m, m.scalar(p.slots as i32), |t| {
            let slot = m.iota(t);
            m.store(t, &mut state.id, m.splat(EMPTY));
            m.set_life(t, &mut state.life, slot, p.empty_life(), !m.is_negative(slot));
        });
        sweep!(m, m.scalar(p.links() as i32), |t| m.store(t, &mut state.link, m.splat(INVALID)));
        if state.learned.is_some() {
            m.write_output(&mut state.header, m.scalar(header::STEP), m.scalar(0));
        }
    });
    m.write_output(&mut state.header, at, generation);
}

/// Empties every slot with an id >= `stable`. All ids of this step are below `limit`.
#[inline(always)]
pub fn invalidate<M: Machine>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    stable: M::Scalar,
    limit: M::Scalar,
) {
    let at = m.scalar(header::TOP);
    let top = m.name_scalar("top", m.read_output(&state.header, at));
    m.phase(Phase::Invalidate, "removal of rows that were not final before this step");
    when!(m, m.gt(top, stable), || {
        sweep!(m, m.scalar(p.slots as i32), |t| {
            let id = m.load(t, &state.id);
            let stale = !m.is_negative(id - stable);
            m.store(t, &mut state.id, m.select(stale, m.splat(EMPTY), id));
            m.set_life(t, &mut state.life, m.iota(t), DEAD, stale);
        });
    });
    m.write_output(&mut state.header, at, m.max(m.min(top, stable), limit));
}
