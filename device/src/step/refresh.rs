//! Refresh: the lifetimes of slots that were hit.

use super::schedule::{Schedule, Work};
use crate::machine::Machine;
use crate::machine::control::sweep;
use crate::table::learned::AFTER_HIT;
use crate::table::params::{Lifetime, Params};
use crate::table::state::State;

/// Refreshes the lifetime of every hit of a token (Alg. 1, line 6). It is a sweep of its own:
/// inside the first round of Probe, its dependent byte accesses kept the gathers of the next tiles
/// from running ahead, which cost a quarter of the time of Probe.
#[inline(always)]
pub fn refresh<M: Machine, S: Schedule>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &Work<'_, M, S>,
    k: M::Scalar,
) {
    sweep!(m, k, |t| {
        let slot = m.load(t, &work.slot);
        set_hit(m, p, t, state, slot, !m.is_negative(slot));
    });
}

/// Refreshes the slots in `work.dead`.
#[inline(always)]
pub fn refresh_listed<M: Machine, S: Schedule>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &Work<'_, M, S>,
) {
    sweep!(m, m.len(&work.dead), |t| {
        let slot = m.item(t, &work.dead, 0);
        set_hit(m, p, t, state, slot, !m.is_negative(slot));
    });
}

/// Sets the lifetimes of the slots of `hit`. A second hit in one request changes nothing.
#[inline(always)]
fn set_hit<M: Machine>(
    m: M,
    p: &Params,
    t: M::Tile,
    state: &mut State<'_, M>,
    slot: M::V,
    hit: M::Mask,
) {
    match &p.lifetime {
        Lifetime::Constant(l) => m.set_life(t, &mut state.life, slot, *l, hit),
        Lifetime::Learned => m.step_life(t, &mut state.life, slot, &AFTER_HIT, hit),
    }
}
