//! Probe: the search for the ids of a token in the Hash-State (Eq. 8 to 11; Alg. 1, line 4).
//!
//! ```text
//! for each id x:                                   first round, over all K lanes
//!     h = first_link(x);  s = slot(link[h]);  hit = id[s] == x
//!     hit: slot = s   else: pending
//! for r in 1..=R, over the pending ids:            later rounds, over a short list
//!     the same with h = nth_link(x, r)
//! ```
//!
//! The id decides, so there is no false hit. The fingerprint and the invalid bit of a link are not
//! examined: a slot that is dead and not yet reused may be hit, and is then alive again. The ids
//! that are pending at the end are the misses of the token, in token order.

use super::schedule::{Schedule, Work};
use crate::machine::control::{repeat, sweep};
use crate::machine::phase::Phase;
use crate::machine::{Indices, Machine};
use crate::table::hash;
use crate::table::params::Params;
use crate::table::state::{EMPTY, State};

/// Searches for the first `k` ids of `work.ids`. Fills `work.slot` (-1 for an id that is not found
/// or not valid), and leaves the misses in `work.pending` as (id, lane) and the ids that are not
/// valid in `work.invalid`.
#[inline(always)]
pub fn probe<M: Machine, S: Schedule>(
    m: M,
    p: &Params,
    state: &State<'_, M>,
    work: &mut Work<'_, M, S>,
    k: M::Scalar,
    limit: M::Scalar,
) {
    m.clear(&mut work.pending);
    m.clear(&mut work.next);
    m.clear(&mut work.invalid);
    sweep!(m, k, |t| {
        let (id, x, valid) = selected(m, t, &work.ids, limit);
        let mixed = hash::mixed(m, p, x);
        let (slot, found) = find(m, p, state, x, hash::first_link(m, p, mixed));
        let hit = m.name_mask("hit", found & valid);
        m.store(t, &mut work.slot, m.select(hit, slot, m.splat(EMPTY)));
        m.append(t, &mut work.pending, valid & !hit, [x, m.iota(t)]);
        m.append(t, &mut work.invalid, !valid, [id]);
    });
    m.phase(Phase::ProbePending, "the other links of the ids that are not found yet");
    repeat!(m, p.retries, m.scalar(p.retries as i32), |round| {
        sweep!(m, m.len(&work.pending), |t| {
            let (x, lane) = (m.item(t, &work.pending, 0), m.item(t, &work.pending, 1));
            let mixed = hash::mixed(m, p, x);
            let at = hash::nth_link(m, p, mixed, round + 1);
            let (slot, hit) = find(m, p, state, x, at);
            m.scatter(t, &mut work.slot, lane, slot, hit, Indices::Distinct);
            m.append(t, &mut work.next, !hit, [x, lane]);
        });
        m.take(&mut work.pending, &mut work.next);
    });
}

/// Returns the ids of the tile, the ids with 0 for padding, and which of them are valid.
#[inline(always)]
fn selected<M: Machine>(
    m: M,
    t: M::Tile,
    ids: &M::Column<'_>,
    limit: M::Scalar,
) -> (M::V, M::V, M::Mask) {
    let id = m.load(t, ids);
    let padding = m.is_negative(id);
    // Padding is set to 0, because the difference from the limit must not overflow.
    let x = m.name_vector("x", m.select(padding, m.splat(0), id));
    let over = m.name_vector("overLimit", x - limit);
    (id, x, m.name_mask("valid", m.is_negative(over) & !padding))
}

/// Returns the slot of the link at position `at`, and whether the slot holds the id.
#[inline(always)]
fn find<M: Machine>(m: M, p: &Params, state: &State<'_, M>, x: M::V, at: M::V) -> (M::V, M::Mask) {
    let slot = m.name_vector("candidate", slot_of(m, p, state, at));
    (slot, m.name_mask("hit", m.eq(m.gather(&state.id, slot), x)))
}

/// Returns the slot of the link at position `h`.
#[inline(always)]
pub fn slot_of<M: Machine>(m: M, p: &Params, state: &State<'_, M>, h: M::V) -> M::V {
    m.low_bits(m.gather(&state.link, h), p.slot_bits())
}
