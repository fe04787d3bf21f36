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

use super::schedule::{Schedule, Token};
use crate::machine::control::sweep;
use crate::machine::phase::Phase;
use crate::machine::{Machine, search};
use crate::table::hash;
use crate::table::params::{Params, Table};
use crate::table::state::State;

/// Publishes the slots of the token.
#[inline(always)]
pub fn copy_slots_out<M: Machine, S: Schedule>(s: &mut Token<'_, '_, M, S>) {
    let slot = &mut s.request.slot;
    s.m.copy_out(&mut slot.words, slot.at + slot.stride * s.number, &s.work.slot, s.request.k);
}

/// Returns whether a table is `wide`, which is known when a kernel is recorded or compiled.
#[inline(always)]
pub fn is_wide(p: &Params) -> bool {
    p.table == Table::Wide
}

/// Writes the links that were found, in list order, and for `paper` the lifetimes of all new slots,
/// with or without a link.
#[inline(always)]
pub fn write_links<M: Machine, S: Schedule>(s: &mut Token<'_, '_, M, S>) {
    let Token { m, p, state, work, .. } = s;
    m.phase(Phase::UpdateState, "the links, of which a later miss overwrites an earlier one");
    sweep!(m, m.len(&work.dead), |t| {
        let (at, word) = (m.load(t, &work.link_position), m.load(t, &work.new_link));
        m.scatter(t, &mut state.link, at, word, !m.is_negative(at));
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
