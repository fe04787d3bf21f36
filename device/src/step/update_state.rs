//! UpdateState: a slot and a link for every miss (Alg. 2).
//!
//! Each schedule has its own order of these steps ([`Schedule::update`]).
//!
//! 1. The ids of the misses enter the victims (Alg. 2, line 7), with lifetimes: for `wide` those of
//!    new slots, for `paper` that of a dead slot, so that links to it can be replaced.
//! 2. A search finds, for each miss, the first of its R + 1 links that is reusable (Alg. 2, lines 1
//!    to 6, and Eq. 4): never used, or left by an earlier occupant of its slot, which its
//!    fingerprint shows, or (`paper`) a link to a dead slot.
//! 3. `write_links` writes these links (Alg. 2, line 10), and for `paper` the lifetimes of all new
//!    slots (line 8): without them, a later token could take the slot of a new link.
//! 4. `collect_overwritten` (`wide`) keeps the misses whose link was overwritten by a later miss,
//!    for a second search. A `paper` miss whose link was overwritten keeps its slot and has no
//!    link: its id is fetched again when it is selected again.
//!
//! Two misses with the same link write it in list order, so the whole word of one of them remains.
//!
//! A victim holds its new id before links are searched. So for `wide` a link to a victim is
//! reusable by its fingerprint, and whether its slot is dead is neither read nor written.

use super::schedule::{Schedule, Step};
use crate::machine::control::{repeat, sweep, when};
use crate::machine::phase::Phase;
use crate::machine::{Indices, Machine, search};
use crate::table::hash;
use crate::table::params::{Params, Table};
use crate::table::state::{DEAD, State};

/// Returns the lifetime of a new slot until it has a link.
#[inline(always)]
pub fn unlinked_life(p: &Params) -> i8 {
    if is_wide(p) { p.new_life() } else { DEAD }
}

/// Does what [`Schedule::update`] says. `find_links` writes the position of the first reusable link of
/// each probe sequence in `work.sequence` to `work.link_position`, for as many as `work.dead` has entries.
#[inline(always)]
pub fn update<M: Machine, S: Schedule>(
    s: &mut Step<'_, '_, M, S>,
    find_links: impl Fn(&mut Step<'_, '_, M, S>),
) {
    let m = s.m;
    let some = m.name_scalar("someMiss", m.gt(m.len(&s.work.miss), m.scalar(0)));
    m.phase(Phase::UpdateState, "the misses enter the victims");
    when!(m, some, || fill_victims(s));
    copy_slots_out(s);
    m.phase(Phase::UpdateState, "a link for every miss");
    when!(m, some, || link_misses(s, &find_links));
}

/// Publishes the slots of the token.
#[inline(always)]
pub fn copy_slots_out<M: Machine, S: Schedule>(s: &mut Step<'_, '_, M, S>) {
    let slot = &mut s.request.slot;
    s.m.copy_out(&mut slot.words, slot.at + slot.stride * s.token, &s.work.slot, s.request.k);
}

/// Writes the slots of the misses into `work.slot`, their ids and lifetimes into the slots, and their
/// probe sequences and new links into `work.sequence` and `work.new_link`.
#[inline(always)]
fn fill_victims<M: Machine, S: Schedule>(s: &mut Step<'_, '_, M, S>) {
    let Step { m, p, state, work, token, .. } = s;
    let (m, token) = (*m, *token);
    let first = m.name_scalar("first", token * m.scalar(p.k as i32));
    sweep!(m, m.len(&work.miss), |t| {
        let (x, position) = (m.item(t, &work.miss, 0), m.item(t, &work.miss, 1));
        let slot = m.item(t, &work.dead, 0);
        let all = !m.is_negative(slot);
        m.set_life(t, &mut state.life, slot, unlinked_life(p), all);
        // Both scatters follow the computation of their operands, so that a vector core runs
        // them in one loop.
        let lane = m.name_vector("lane", position - first);
        m.scatter(t, &mut state.id, slot, x, all, Indices::Distinct);
        m.scatter(t, &mut work.slot, lane, slot, all, Indices::Distinct);
        let mixed = hash::mixed(m, p, x);
        m.store(t, &mut work.sequence, hash::sequence(m, p, x, mixed));
        m.store(t, &mut work.new_link, hash::link_word(m, p, mixed, slot));
    });
}

/// Finds and writes a link for each miss. `wide` searches twice: the second time for the misses whose
/// link was overwritten by a later miss.
#[inline(always)]
fn link_misses<M: Machine, S: Schedule>(
    s: &mut Step<'_, '_, M, S>,
    find_links: &impl Fn(&mut Step<'_, '_, M, S>),
) {
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
pub fn reusable<M: Machine>(m: M, p: &Params, state: &State<'_, M>, at: M::V) -> M::Mask {
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

/// Returns whether a table is `wide`, which is known when a kernel is recorded or compiled.
#[inline(always)]
pub fn is_wide(p: &Params) -> bool {
    p.table == Table::Wide
}

/// Writes the links that were found, in list order, and for `paper` the lifetimes of all new slots,
/// with or without a link.
#[inline(always)]
pub fn write_links<M: Machine, S: Schedule>(s: &mut Step<'_, '_, M, S>) {
    let Step { m, p, state, work, .. } = s;
    m.phase(Phase::UpdateState, "the links, of which a later miss overwrites an earlier one");
    sweep!(m, m.len(&work.dead), |t| {
        let (at, word) = (m.load(t, &work.link_position), m.load(t, &work.new_link));
        m.scatter(t, &mut state.link, at, word, !m.is_negative(at), Indices::Repeated);
        if !is_wide(p) {
            let slot = m.low_bits(word, p.slot_bits());
            m.set_life(t, &mut state.life, slot, p.new_life(), !m.is_negative(word));
        }
    });
}

/// Keeps in `dead` the slots of the misses whose link was overwritten by a later miss, and prepares
/// their second search. `entries` are the new links of all misses, and probe sequences; those of the
/// misses that are kept replace them. They are few, and only their ids are gathered.
#[inline(always)]
pub fn collect_overwritten<M: Machine>(
    m: M,
    p: &Params,
    state: &State<'_, M>,
    dead: &mut M::List<'_, 1>,
    link_position: &M::Column<'_>,
    [new_link, sequence]: [&mut M::Column<'_>; 2],
) {
    m.phase(Phase::UpdateState, "another link for the misses whose link was overwritten");
    let n = m.name_scalar("linked", m.len(dead));
    m.clear(dead);
    sweep!(m, n, |t| {
        let (at, word) = (m.load(t, link_position), m.load(t, new_link));
        let slot = m.name_vector("victim", search::slot_of(m, p.slots, word));
        let lost = !m.eq(m.gather(&state.link, at), word) & !m.is_negative(at);
        m.append(t, dead, lost, [slot]);
    });
    sweep!(m, m.len(dead), |t| {
        let slot = m.item(t, dead, 0);
        let x = m.gather(&state.id, slot);
        let mixed = hash::mixed(m, p, x);
        m.store(t, sequence, hash::sequence(m, p, x, mixed));
        m.store(t, new_link, hash::link_word(m, p, mixed, slot));
    });
}
