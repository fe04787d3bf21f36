//! Probe: which of a token's ids are in the Hash-State (Algorithm 1).
//!
//! ```text
//! for each id x:                                   first round, over all K lanes
//!     h = first(x);  s = slot(link[h]);  hit = id[s] == x
//!     hit: slot = s   else: pending
//! for r in 1..=R, over what is still pending:      later rounds, over a short list
//!     the same with h = nth(x, r)
//! ```
//! With `pairs`, a round looks at two links, of which the first that hits counts. That halves the rounds, and fewer ids
//! are found in a later round, which scatters them; it takes more gathers.
//!
//! The id decides, so there is no false hit; the link's print and its invalid bit are not looked at:
//! a slot that is dead and not yet reused may still be hit, and is then revived. What is pending at
//! the end is the token's misses, in token order.

use super::schedule::{Schedule, Work};
use crate::machine::Machine;
use crate::machine::phase::Phase;
use crate::table::hash;
use crate::table::params::Params;
use crate::table::state::{EMPTY, State};

/// Looks the first `k` ids of `work.ids` up. Fills `work.slot` (-1 where not found or not valid),
/// leaves the misses in `work.pending` as (id, lane) and ids that are not valid in `work.invalid`.
#[inline(always)]
pub fn probe<M: Machine, S: Schedule>(
    m: M,
    p: &Params,
    state: &State<'_, M>,
    work: &mut Work<'_, M, S>,
    k: M::Scalar,
    limit: M::Scalar,
    pairs: bool,
) {
    m.clear(&mut work.pending);
    m.clear(&mut work.next);
    m.clear(&mut work.invalid);
    m.sweep(
        k,
        #[inline(always)]
        |t| {
            let (id, x, valid) = selected(m, t, &work.ids, limit);
            let mixed = hash::mixed(m, p, x);
            let (slot, found) = find(m, p, state, x, mixed, hash::first_link(m, p, mixed), pairs);
            let hit = m.name_mask("hit", found & valid);
            m.store(t, &mut work.slot, m.select(hit, slot, m.splat(EMPTY)));
            m.append(t, &mut work.pending, valid & !hit, [x, m.iota(t)]);
            m.append(t, &mut work.invalid, !valid, [id]);
        },
    );
    let links = 1 + u32::from(pairs);
    let rounds = p.retries.div_ceil(links) - u32::from(pairs);
    m.phase(Phase::ProbePending, "what is pending in the end is the miss list.");
    m.repeat(
        rounds,
        m.scalar(rounds as i32),
        #[inline(always)]
        |round| {
            let link = if pairs { round + round } else { round };
            m.sweep(
                m.len(&work.pending),
                #[inline(always)]
                |t| {
                    let (x, lane) = (m.item(t, &work.pending, 0), m.item(t, &work.pending, 1));
                    let mixed = hash::mixed(m, p, x);
                    let at = hash::nth_link(m, p, mixed, link + links as i32);
                    let (slot, hit) = find(m, p, state, x, mixed, at, pairs);
                    m.scatter(t, &mut work.slot, lane, slot, hit);
                    m.append(t, &mut work.next, !hit, [x, lane]);
                },
            );
            m.take(&mut work.pending, &mut work.next);
        },
    );
}

/// The tile's ids, the same with 0 for padding, and which of them are valid.
#[inline(always)]
pub fn selected<M: Machine>(
    m: M,
    t: M::Tile,
    ids: &M::Column<'_>,
    limit: M::Scalar,
) -> (M::V, M::V, M::Mask) {
    let id = m.load(t, ids);
    let padding = m.is_negative(id);
    // Cleared first: the difference with the limit must not overflow.
    let x = m.name_vector("x", m.select(padding, m.splat(0), id));
    let over = m.name_vector("over", x - limit);
    (id, x, m.name_mask("valid", m.is_negative(over) & !padding))
}

/// The slot that the link at `at`, or with `pairs` the one after it, names, and whether it holds the id.
#[inline(always)]
fn find<M: Machine>(
    m: M,
    p: &Params,
    state: &State<'_, M>,
    x: M::V,
    mixed: M::V,
    at: M::V,
    pairs: bool,
) -> (M::V, M::Mask) {
    let slot = m.name_vector("candidate", slot_of(m, p, state, at));
    let hit = m.name_mask("hit", m.eq(m.gather(&state.id, slot), x));
    if !pairs {
        return (slot, hit);
    }
    let other = m.name_vector("other", slot_of(m, p, state, hash::next_link(m, p, mixed, at)));
    let hits = m.name_mask("otherHit", m.eq(m.gather(&state.id, other), x));
    let slot = m.name_vector("found", m.select(hit, slot, other));
    (slot, m.name_mask("anyHit", hit | hits))
}

/// The slot that the link at `h` names.
#[inline(always)]
fn slot_of<M: Machine>(m: M, p: &Params, state: &State<'_, M>, h: M::V) -> M::V {
    m.low_bits(m.gather(&state.link, h), p.slot_bits())
}
