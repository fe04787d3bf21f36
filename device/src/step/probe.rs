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

use super::schedule::{Schedule, Step};
use crate::machine::control::{repeat, sweep};
use crate::machine::phase::Phase;
use crate::machine::{Machine, search};
use crate::table::hash;
use crate::table::state::EMPTY;

/// Searches for the ids of the token in `work.ids`. Fills `work.slot` (-1 for an id that is not found
/// or not valid), and leaves the misses in `work.pending` as (id, lane) and the ids that are not
/// valid in `work.invalid`.
#[inline(always)]
pub fn probe<M: Machine, S: Schedule>(s: &mut Step<'_, '_, M, S>) {
    let Step { m, p, state, work, request, .. } = s;
    let m = *m;
    m.clear(&mut work.pending);
    m.clear(&mut work.next);
    m.clear(&mut work.invalid);
    let table = [&state.link, &state.id];
    sweep!(m, request.k, |t| {
        let id = m.load(t, &work.ids);
        let padding = m.is_negative(id);
        // Padding is set to 0, because the difference from the limit must not overflow.
        let x = m.name_vector("x", m.select(padding, m.splat(0), id));
        let over = m.name_vector("overLimit", x - request.limit);
        let valid = m.name_mask("valid", m.is_negative(over) & !padding);
        let mixed = hash::mixed(m, p, x);
        let at = hash::first_link(m, p, mixed);
        let (slot, found) = search::candidate(m, p.slots, table, at, x);
        let hit = m.name_mask("hit", found & valid);
        m.store(t, &mut work.slot, m.select(hit, slot, m.splat(EMPTY)));
        m.append(t, &mut work.pending, valid & !hit, [x, m.iota(t)]);
        m.append(t, &mut work.invalid, !valid, [id]);
    });
    m.phase(Phase::ProbePending, "the other links of the ids that are not found yet");
    other_links(
        m,
        p.retries,
        &mut work.slot,
        [&mut work.pending, &mut work.next],
        #[inline(always)]
        |x, r| {
            let at = hash::nth_link(m, p, hash::mixed(m, p, x), r);
            search::candidate(m, p.slots, table, at, x)
        },
    );
}

/// Examines the links after the first one, one link of each entry of `pending` per round. An entry
/// is a key and a lane. The word that `examine` returns for the first link of the key that matches
/// goes to the lane of `result`; entries without such a link remain in `pending`.
#[inline(always)]
pub fn other_links<M: Machine>(
    m: M,
    retries: u32,
    result: &mut M::Column<'_>,
    [pending, next]: [&mut M::List<'_, 2>; 2],
    examine: impl Fn(M::V, M::Scalar) -> (M::V, M::Mask),
) {
    repeat!(m, retries, m.scalar(retries as i32), |round| {
        sweep!(m, m.len(pending), |t| {
            let (key, lane) = (m.item(t, pending, 0), m.item(t, pending, 1));
            let (word, matches) = examine(key, round + 1);
            m.scatter(t, result, lane, word, matches);
            m.append(t, next, !matches, [key, lane]);
        });
        m.move_list(pending, next);
    });
}

/// Copies the ids of the token in.
#[inline(always)]
pub fn copy_ids<M: Machine, S: Schedule>(s: &mut Step<'_, '_, M, S>) {
    let ids = &s.request.ids;
    s.m.copy_in(&mut s.work.ids, &ids.words, ids.at + ids.stride * s.token, s.request.k);
}
