//! CollectDead: as many slots to evict as the token has misses, chosen by lifetime (Eq. 12; Alg. 1,
//! lines 11 to 13).
//!
//! Let th be the least t with count(life <= t) >= n_g. `paper`: every lifetime falls by max(0, th +
//! 1), which is the number of decays that the loop of Alg. 1 takes; the victims are the slots with
//! the lowest indices among those with life < 0. `wide`: the victims are the slots with the n_g
//! smallest lifetimes, or of learned lifetimes the smallest values ([`super::order`]): first those below th
//! and then those equal to it, each in the order of their indices.
//!
//! There are always enough victims, because the lifetimes of slots that the running request uses
//! are the largest, and N_q·K <= S.

use super::order::with_values;
use super::schedule::{Schedule, Token};
use crate::machine::Machine;
use crate::machine::phase::Phase;
use crate::table::params::Table;
use crate::table::state::header;

/// Fills `work.dead` with as many slots as `work.miss` has entries.
#[inline(always)]
pub fn collect_dead<M: Machine, S: Schedule>(s: &mut Token<'_, '_, M, S>) {
    let Token { m, state, work, .. } = s;
    m.phase(Phase::CollectDead, "the slots with the smallest lifetimes, one for each miss");
    let need = m.len(&work.miss);
    let at = m.scalar(header::THRESHOLD);
    let hint = m.name_scalar("lastThreshold", m.read_output(&state.header, at));
    let th = with_values(state, work.order.as_ref(), |values| m.threshold(values, hint, need));
    let th = m.name_scalar("threshold", th);
    m.write_output(&mut state.header, at, th);
    m.clear(&mut work.dead);
    match s.p.table {
        Table::Paper { .. } => {
            let all = m.scalar(i32::from(i8::MIN));
            m.age(&mut state.life, m.max(th + 1, m.scalar(0)), all);
            m.append_life(&mut work.dead, &state.life, m.scalar(0), need, false);
        }
        Table::Wide => {
            let dead = &mut work.dead;
            with_values(state, work.order.as_ref(), |values| {
                m.append_life(dead, values, th, need, false);
                m.append_life(dead, values, th, need, true);
            });
        }
    }
}
