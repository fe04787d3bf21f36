//! Invalidation, at the start of the step: every slot with an id >= `stable_len` is cleared.
//!
//! `stable_len` is the number of tokens whose KV was final before this forward. That keeps accepted
//! drafts, handles any rollback, and cannot be off by one; the paper's pass at the end of a step leaves
//! stale hits when N is chosen wrongly. It is a scan over the slots, because a slot without a link
//! (an orphan) holds an id too. The header bounds the ids that a table may hold, so a step that
//! rejected no draft scans nothing.

use crate::machine::Machine;
use crate::params::Params;
use crate::state::{DEAD, EMPTY, State, header};

/// Clears ids >= `stable`; ids of this step will be below `limit`.
#[inline(always)]
pub fn invalidate<M: Machine>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    stable: M::Scalar,
    limit: M::Scalar,
) {
    let at = m.scalar(header::TOP);
    let top = m.peek(&state.header, at);
    m.sweep(
        m.if_gt(top, stable, p.slots as i32),
        #[inline(always)]
        |t| {
            let c = m.load(t, &state.id);
            let stale = !m.neg(c - stable);
            m.store(t, &mut state.id, m.select(stale, m.splat(EMPTY), c));
            m.set_life(t, &mut state.life, m.iota(t), DEAD, stale);
        },
    );
    m.put(&mut state.header, at, m.max(m.min(top, stable), limit));
}
