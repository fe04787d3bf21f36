//! Probe: which of a token's ids are in the Hash-State (Algorithm 1).
//!
//! ```text
//! for each id x:                                   first round, over all K lanes
//!     h = first(x);  s = slot(link[h]);  hit = id[s] == x
//!     hit: slot = s   else: pending
//! for r in 1..=R, over what is still pending:      later rounds, over a short list
//!     the same with h = nth(x, r)
//! for each hit: refresh life[slot]
//! ```
//! With `pairs`, a round looks at two links, of which the first that hits counts: half the rounds and fewer ids
//! found late, which have to be scattered, for more gathers.
//!
//! The id decides, so there is no false hit; the link's print and its invalid bit are not looked at:
//! a slot that is dead and not yet reused may still be hit, and is then revived. What is pending at
//! the end is the token's misses, in token order.

use crate::hash;
use crate::machine::Machine;
use crate::params::{Lifetime, Params};
use crate::stage_one::Work;
use crate::state::{EMPTY, State};

/// Looks the first `k` ids of `work.ids` up. Fills `work.slot` (-1 where not found or not valid),
/// leaves the misses in `work.pending` as (id, lane) and ids that are not valid in `work.void`.
#[inline(always)]
pub fn probe<M: Machine>(
    m: M,
    p: &Params,
    state: &State<'_, M>,
    work: &mut Work<'_, M>,
    k: M::Scalar,
    limit: M::Scalar,
    pairs: bool,
) {
    m.clear(&mut work.pending);
    m.clear(&mut work.next);
    m.clear(&mut work.void);
    m.sweep(
        k,
        #[inline(always)]
        |t| {
            let (id, x, valid) = selected(m, t, work, limit);
            let mixed = hash::mixed(m, p, x);
            let (slot, found) = find(m, p, state, x, mixed, hash::first(m, p, mixed), pairs);
            let hit = found & valid;
            m.store(t, &mut work.slot, m.select(hit, slot, m.splat(EMPTY)));
            m.append(t, &mut work.pending, valid & !hit, [x, m.iota(t)]);
            m.append(t, &mut work.void, !valid, [id]);
        },
    );
    let links = 1 + u32::from(pairs);
    let rounds = p.retries.div_ceil(links) - u32::from(pairs);
    m.repeat(
        rounds,
        m.if_gt(k, m.scalar(0), rounds as i32),
        #[inline(always)]
        |round| {
            let link = if pairs { round + round } else { round };
            m.sweep(
                m.len(&work.pending),
                #[inline(always)]
                |t| {
                    let (x, lane) = (m.item(t, &work.pending, 0), m.item(t, &work.pending, 1));
                    let mixed = hash::mixed(m, p, x);
                    let at = hash::nth(m, p, mixed, link + links as i32);
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
    work: &Work<'_, M>,
    limit: M::Scalar,
) -> (M::V, M::V, M::Mask) {
    let id = m.load(t, &work.ids);
    let padding = m.neg(id);
    // Cleared first: the difference with the limit must not overflow.
    let x = m.select(padding, m.splat(0), id);
    (id, x, m.neg(x - limit) & !padding)
}

/// Counts those of the ids that are not valid that are at or above the limit: in `work.far`.
#[inline(always)]
pub fn count_far<M: Machine>(m: M, work: &mut Work<'_, M>) {
    m.sweep(
        m.len(&work.void),
        #[inline(always)]
        |t| m.append(t, &mut work.far, !m.neg(m.item(t, &work.void, 0)), []),
    );
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
    let slot = slot_of(m, p, state, at);
    let hit = m.eq(m.gather(&state.id, slot), x);
    if !pairs {
        return (slot, hit);
    }
    let other = slot_of(m, p, state, hash::next(m, p, mixed, at));
    let hits = m.eq(m.gather(&state.id, other), x);
    (m.select(hit, slot, other), hit | hits)
}

/// The slot that the link at `h` names.
#[inline(always)]
fn slot_of<M: Machine>(m: M, p: &Params, state: &State<'_, M>, h: M::V) -> M::V {
    m.low(m.gather(&state.link, h), p.slot_bits())
}

/// Refreshes the lifetime of every hit: per token, as Algorithm 1 has it, not per request as the text
/// says. A sweep of its own: inside the first round its dependent byte accesses kept the gathers of
/// the next tiles from running ahead, which cost a quarter of Probe.
#[inline(always)]
pub fn refresh<M: Machine>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &Work<'_, M>,
    k: M::Scalar,
) {
    m.sweep(
        k,
        #[inline(always)]
        |t| {
            let slot = m.load(t, &work.slot);
            let hit = !m.neg(slot);
            set_hit(m, p, t, state, slot, hit);
        },
    );
}

/// Refreshes the first `n` slots of `work.dead`.
#[inline(always)]
pub fn refresh_listed<M: Machine>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &Work<'_, M>,
    n: M::Scalar,
) {
    m.sweep(
        n,
        #[inline(always)]
        |t| {
            let slot = m.item(t, &work.dead, 0);
            set_hit(m, p, t, state, slot, !m.neg(slot));
        },
    );
}

/// What a hit makes of a slot's lifetime. Doing it twice in a request changes nothing.
#[inline(always)]
pub fn set_hit<M: Machine>(
    m: M,
    p: &Params,
    t: M::Tile,
    state: &mut State<'_, M>,
    slot: M::V,
    hit: M::Mask,
) {
    match &p.lifetime {
        Lifetime::Constant(l) => m.set_life(t, &mut state.life, slot, *l, hit),
        Lifetime::Frequency(f) => m.step_life(t, &mut state.life, slot, &f.hit, hit),
    }
}
