//! Deferral: only the hits that could be taken for victims are refreshed before victims are chosen.
//!
//! Where a scattered write is a scalar one, refreshing all hits of a token is the longest piece of its way
//! to the miss list, and nearly all of it can wait until that list is published. With b so large that at
//! least n_g slots of lifetime <= b are no hits, no victim has a lifetime above b. A refresh raises a
//! lifetime; so a hit above b is no victim before or after its own, and no count up to b contains it.
//! Hence the outcome is the same to the last bit (`tests/deferral.rs`).
//!
//! b comes down from above: the least t with count(life <= t) >= n_g + h, where h bounds the hits up to t:
//! first all of them, then those up to the last b. Where S = K that finds nothing to defer. `paper` defers
//! nothing: its extra decays fall on what was refreshed before.

use crate::machine::Machine;
use crate::params::{Params, Table};
use crate::probe::set_hit;
use crate::stage_one::Work;
use crate::state::{State, header};

/// When hits are refreshed. Both give the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// Before victims are chosen: less work in all, right for CPUs.
    AtOnce,
    /// Most of them after the token's miss list is published.
    Late,
}

impl Refresh {
    /// Whether anything is deferred on this table.
    #[inline(always)]
    pub fn defers(self, p: &Params) -> bool {
        self == Self::Late && p.table == Table::Wide
    }
}

/// Rounds that bring b down.
const ROUNDS: u32 = 2;

/// Refreshes the hits that could be taken for victims. `work.pending` holds the misses, `work.slot` the hits;
/// `work.seek` and `work.seek_next` are overwritten.
#[inline(always)]
pub fn refresh_early<M: Machine>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &mut Work<'_, M>,
    k: M::Scalar,
) {
    let hint = m.peek(&state.header, m.scalar(header::THRESHOLD));
    let misses = m.len(&work.pending);
    m.clear(&mut work.seek);
    m.clear(&mut work.seek_next);
    let above = bound(m, state, hint, k - m.len(&work.void));
    m.sweep(
        k,
        #[inline(always)]
        |t| {
            let slot = m.load(t, &work.slot);
            let low = m.neg(m.life_at(&state.life, slot) - above);
            m.append(t, &mut work.seek, !m.neg(slot) & low, [slot, slot]);
        },
    );
    m.repeat(
        ROUNDS,
        m.scalar(ROUNDS as i32),
        #[inline(always)]
        |_| {
            let above = bound(m, state, hint, misses + m.len(&work.seek));
            m.sweep(
                m.len(&work.seek),
                #[inline(always)]
                |t| {
                    let slot = m.item(t, &work.seek, 1);
                    let low = m.neg(m.life_at(&state.life, slot) - above);
                    m.append(t, &mut work.seek_next, low, [slot, slot]);
                },
            );
            m.take(&mut work.seek, &mut work.seek_next);
        },
    );
    m.sweep(
        m.len(&work.seek),
        #[inline(always)]
        |t| {
            let slot = m.item(t, &work.seek, 1);
            set_hit(m, p, t, state, slot, !m.neg(slot));
        },
    );
}

/// b + 1.
#[inline(always)]
fn bound<M: Machine>(m: M, state: &State<'_, M>, hint: M::Scalar, need: M::Scalar) -> M::Scalar {
    let life = &state.life;
    m.bisect(
        hint,
        need,
        #[inline(always)]
        |t| m.count_le(life, t),
    ) + 1
}
