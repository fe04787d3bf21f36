//! The schedule of CPUs: hits are refreshed before victims are chosen, and the links of an id are
//! examined one by one, because every lane that is left out saves time.

use super::order::find_values;
use super::refresh::refresh;
use super::schedule::{Schedule, Token, lanes, sequences};
use super::update_state::{collect_overwritten, copy_slots_out, is_wide, write_links};
use crate::machine::Memory;
use crate::machine::control::{repeat, sweep, when};
use crate::machine::declare::Columns;
use crate::machine::phase::Phase;
use crate::machine::{Machine, search};
use crate::table::hash;
use crate::table::params::Params;
use crate::table::state::{DEAD, EMPTY, State};

/// The schedule that examines one link of each id at a time.
#[derive(Clone, Copy, Debug)]
pub struct Sequential;

/// The working columns that only [`Sequential`] uses.
pub struct SequentialColumns<'a, M: Memory> {
    /// (probe sequence, entry of the miss) for the misses without a link so far.
    pub unlinked: M::List<'a, 2>,
    /// The same list for the next round.
    pub next_unlinked: M::List<'a, 2>,
}

impl Schedule for Sequential {
    type Own<'a, M: Memory> = SequentialColumns<'a, M>;
    const SHARES: bool = false;
    const SCATTERS_POSITIONS: bool = true;

    #[inline(always)]
    fn declare<'a, M: Memory>(self, p: &Params, c: &mut impl Columns<'a, M>) -> Self::Own<'a, M> {
        let columns = || [("probes", sequences(p)), ("entry", lanes(p))];
        SequentialColumns {
            unlinked: c.list("unlinked", p.k, columns()),
            next_unlinked: c.list("next_unlinked", p.k, columns()),
        }
    }

    #[inline(always)]
    fn probe<M: Machine>(self, s: &mut Token<'_, '_, M, Self>) {
        s.m.phase(Phase::Probe, "the first link of each id");
        let ids = &s.request.ids;
        s.m.copy_in(&mut s.work.ids, &ids.words, ids.at + ids.stride * s.number, s.request.k);
        probe(s);
    }

    #[inline(always)]
    fn refresh<M: Machine>(self, s: &mut Token<'_, '_, M, Self>) {
        s.m.phase(Phase::Refresh, "the lifetimes of the hits");
        refresh(s);
        find_values(s);
    }

    #[inline(always)]
    fn update<M: Machine>(self, s: &mut Token<'_, '_, M, Self>) {
        let m = s.m;
        let some = m.name_scalar("someMiss", m.gt(m.len(&s.work.miss), m.scalar(0)));
        m.phase(Phase::UpdateState, "the misses enter the victims");
        when!(m, some, || fill_victims(s));
        copy_slots_out(s);
        m.phase(Phase::UpdateState, "a link for every miss");
        when!(m, some, || link_misses(s));
    }
}

/// Searches for the ids of the token in `work.ids` (Eq. 8 to 11; Alg. 1, line 4). Fills `work.slot` (-1
/// for an id that is not found or not valid), and leaves the misses in `work.pending` as (id, lane) and
/// the ids that are not valid in `work.invalid`.
///
/// ```text
/// for each id x:                                   first round, over all K lanes
///     h = first_link(x);  s = slot(link[h]);  hit = id[s] == x
///     hit: slot = s   else: pending
/// for r in 1..=R, over the pending ids:            later rounds, over a short list
///     the same with h = nth_link(x, r)
/// ```
///
/// The id decides, so there is no false hit. The fingerprint and the invalid bit of a link are not
/// examined: a slot that is dead and not yet reused may be hit, and is then alive again. The ids
/// that are pending at the end are the misses of the token, in token order.
#[inline(always)]
fn probe<M: Machine>(s: &mut Token<'_, '_, M, Sequential>) {
    let Token { m, p, state, work, request, .. } = s;
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
fn other_links<M: Machine>(
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

/// Writes the slots of the misses into `work.slot`, their ids and lifetimes into the slots, and their
/// probe sequences and new links into `work.sequence` and `work.new_link`.
#[inline(always)]
fn fill_victims<M: Machine>(s: &mut Token<'_, '_, M, Sequential>) {
    let Token { m, p, state, work, number, .. } = s;
    let m = *m;
    let first = m.name_scalar("first", *number * m.scalar(p.k as i32));
    let unlinked_life = if is_wide(p) { p.new_life() } else { DEAD };
    sweep!(m, m.len(&work.miss), |t| {
        let (x, position) = (m.item(t, &work.miss, 0), m.item(t, &work.miss, 1));
        let slot = m.item(t, &work.dead, 0);
        let all = !m.is_negative(slot);
        m.set_life(t, &mut state.life, slot, unlinked_life, all);
        // Both scatters follow the computation of their operands, so that a vector core runs
        // them in one loop.
        let lane = m.name_vector("lane", position - first);
        m.scatter(t, &mut state.id, slot, x, all);
        m.scatter(t, &mut work.slot, lane, slot, all);
        let mixed = hash::mixed(m, p, x);
        m.store(t, &mut work.sequence, hash::sequence(m, p, x, mixed));
        m.store(t, &mut work.new_link, hash::link_word(m, p, mixed, slot));
    });
}

/// Finds and writes a link for each miss. `wide` searches twice: the second time for the misses whose
/// link was overwritten by a later miss.
#[inline(always)]
fn link_misses<M: Machine>(s: &mut Token<'_, '_, M, Sequential>) {
    let (m, rounds) = (s.m, 1 + u32::from(is_wide(s.p)));
    repeat!(m, rounds, m.scalar(rounds as i32), |round| {
        find_links(s);
        write_links(s);
        if is_wide(s.p) {
            // Nothing follows the last search.
            when!(m, m.ne(round, m.scalar(rounds as i32 - 1)), || {
                let work = &mut *s.work;
                let entries = [&mut work.new_link, &mut work.sequence];
                collect_overwritten(m, s.p, s.state, &mut work.dead, &work.link_position, entries);
            });
        }
    });
}

/// Returns whether the links at positions `at` may be replaced: those that were left behind, and
/// for `paper` those to dead slots.
#[inline(always)]
fn reusable<M: Machine>(m: M, p: &Params, state: &State<'_, M>, at: M::V) -> M::Mask {
    let (slot, free) = search::left_behind(
        m,
        p.slots,
        [&state.link, &state.id],
        at,
        #[inline(always)]
        |id| hash::fingerprint(m, p, hash::mixed(m, p, id)),
    );
    if is_wide(p) { free } else { free | m.is_negative(m.gather_life(&state.life, slot)) }
}

/// Does what [`Machine::find_free`] does for the entries of `work.dead`, one link of each that has none
/// so far per round.
#[inline(always)]
fn find_links<M: Machine>(s: &mut Token<'_, '_, M, Sequential>) {
    let Token { m, p, state, work, .. } = s;
    let (m, p) = (*m, *p);
    m.clear(&mut work.own.unlinked);
    m.clear(&mut work.own.next_unlinked);
    sweep!(m, m.len(&work.dead), |t| {
        let sequence = m.load(t, &work.sequence);
        let at = hash::first_in_sequence(m, p, sequence);
        let free = reusable(m, p, state, at);
        m.store(t, &mut work.link_position, m.select(free, at, m.splat(-1)));
        m.append(t, &mut work.own.unlinked, !free, [sequence, m.iota(t)]);
    });
    let SequentialColumns { unlinked, next_unlinked } = &mut work.own;
    other_links(
        m,
        p.retries,
        &mut work.link_position,
        [unlinked, next_unlinked],
        #[inline(always)]
        |sequence, r| {
            let at = hash::nth_in_sequence(m, p, sequence, r);
            (at, reusable(m, p, state, at))
        },
    );
}
