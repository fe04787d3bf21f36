//! Refresh: the lifetimes of slots that were hit.

use super::schedule::{Schedule, Token};
use crate::machine::Machine;
use crate::machine::control::sweep;
use crate::table::learned::AFTER_HIT;
use crate::table::params::{Lifetime, Params};
use crate::table::state::State;

/// Refreshes the lifetime of every hit of the token (Alg. 1, line 6). It is a sweep of its own:
/// inside the first round of Probe, its dependent byte accesses kept the gathers of the next tiles
/// from running ahead, which cost a quarter of the time of Probe.
#[inline(always)]
pub fn refresh<M: Machine, S: Schedule>(s: &mut Token<'_, '_, M, S>) {
    let m = s.m;
    sweep!(m, s.request.k, |t| {
        let slot = m.load(t, &s.work.slot);
        set_hit(m, s.p, t, s.state, slot);
    });
}

/// Refreshes the slots in `work.dead`.
#[inline(always)]
pub fn refresh_listed<M: Machine, S: Schedule>(s: &mut Token<'_, '_, M, S>) {
    let m = s.m;
    sweep!(m, m.len(&s.work.dead), |t| {
        let slot = m.item(t, &s.work.dead, 0);
        set_hit(m, s.p, t, s.state, slot);
    });
}

/// Sets the lifetimes of the slots that are not -1. A second hit in one request changes nothing.
#[inline(always)]
fn set_hit<M: Machine>(m: M, p: &Params, t: M::Tile, state: &mut State<'_, M>, slot: M::V) {
    let hit = !m.is_negative(slot);
    match &p.lifetime {
        Lifetime::Constant(l) => m.set_life(t, &mut state.life, slot, *l, hit),
        Lifetime::Learned => m.step_life(t, &mut state.life, slot, &AFTER_HIT, hit),
    }
}
