//! UpdateState: a slot and a link for every miss (Algorithm 1, last part).
//!
//! 1. `fill_victims`: write the misses' ids into the victims, and their lifetimes: `wide` those of new slots,
//!    `paper` that of a dead slot, so that links to it can be taken;
//! 2. [`Schedule::find_links`]: find, per miss, the first of its R + 1 links that is reusable: never used, or left
//!    over from an earlier owner of its slot, which its print tells, or (`paper`) its slot is dead;
//! 3. `write_links`: write these links, and (`paper`) the lifetimes of new slots: without them, a later token could
//!    take the slot behind the link;
//! 4. `collect_overwritten` (`wide`): misses whose link was overwritten by a later miss look once more. In `paper` they keep
//!    their slot and lose the mapping: their ids will be fetched again.
//!
//! Two misses that take one link write it in list order, so one whole word survives.
//!
//! A victim holds its new id before links are searched. So to `wide` a link to a victim is a left-over as
//! any other: whether it is dead need not be asked, and need not be written.

use super::request::Request;
use super::schedule::{Schedule, Work};
use crate::machine::Machine;
use crate::machine::phase::Phase;
use crate::table::hash;
use crate::table::params::{Params, Table};
use crate::table::state::{DEAD, State};

/// Gives `work.miss` the slots of `work.dead`, publishes the token's slots, and enters the new links.
#[inline(always)]
pub fn update_state<M: Machine, S: Schedule>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &mut Work<'_, M, S>,
    request: &mut Request<'_, M>,
    token: M::Scalar,
) {
    m.phase(Phase::UpdateState, "victims take the misses.");
    fill_victims(m, p, state, work, token);
    S::refresh_new(m, p, state, work, request, token);
    let at = request.slot.at + request.slot.stride * token;
    m.publish(&mut request.slot.words, at, &work.slot, request.k);
    // `wide` does it twice: the second time for those that lost their link to a later miss.
    let rounds = 1 + u32::from(is_wide(p));
    m.phase(Phase::UpdateState, "a link for every miss.");
    m.repeat(
        rounds,
        m.scalar(rounds as i32),
        #[inline(always)]
        |_| {
            S::find_links(m, p, state, work);
            write_links(m, p, state, work);
            if is_wide(p) {
                collect_overwritten(m, p, state, work);
            }
        },
    );
}

/// Writes the misses' slots into `work.slot`, their ids into the slots, and their probe sequences and new links
/// into `work.sequence` and `work.new_link`.
#[inline(always)]
fn fill_victims<M: Machine, S: Schedule>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &mut Work<'_, M, S>,
    token: M::Scalar,
) {
    let first = m.name_scalar("first", token * m.scalar(p.k as i32));
    m.sweep(
        m.len(&work.miss),
        #[inline(always)]
        |t| {
            let (x, position) = (m.item(t, &work.miss, 0), m.item(t, &work.miss, 1));
            let slot = m.item(t, &work.dead, 0);
            let all = !m.is_negative(slot);
            S::set_new(m, p, t, state, slot, all);
            // Made before both scatters, which then share a loop on a vector core.
            let lane = m.name_vector("lane", position - first);
            m.scatter(t, &mut state.id, slot, x, all);
            m.scatter(t, &mut work.slot, lane, slot, all);
            let mixed = hash::mixed(m, p, x);
            m.store(t, &mut work.sequence, hash::sequence(m, p, x, mixed));
            m.store(t, &mut work.new_link, hash::link_word(m, p, mixed, slot));
        },
    );
}

/// The lifetime of a new slot until it is linked.
#[inline(always)]
pub fn unlinked_life(p: &Params) -> i8 {
    if is_wide(p) { p.new_life() } else { DEAD }
}

/// Which links may be taken. One that was never used has the invalid bit above its print, and so the
/// print of no id.
#[inline(always)]
pub fn reusable<M: Machine>(m: M, p: &Params, state: &State<'_, M>, link: M::V) -> M::Mask {
    let slot = m.low_bits(link, p.slot_bits());
    let fingerprint = m.shr(link, p.slot_bits());
    let owner = hash::fingerprint(m, p, hash::mixed(m, p, m.gather(&state.id, slot)));
    let free = !m.eq(fingerprint, owner);
    if is_wide(p) { free } else { free | m.is_negative(m.gather_life(&state.life, slot)) }
}

/// Whether a table is `wide`: known when a kernel is recorded or compiled for.
#[inline(always)]
fn is_wide(p: &Params) -> bool {
    p.table == Table::Wide
}

/// Writes the links that were found, in list order, and (`paper`) the lifetimes of all new slots, with a
/// link or without.
#[inline(always)]
fn write_links<M: Machine, S: Schedule>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &Work<'_, M, S>,
) {
    m.phase(Phase::UpdateState, "the links; of two claims the later one stays.");
    m.sweep(
        m.len(&work.dead),
        #[inline(always)]
        |t| {
            let (at, word) = (m.load(t, &work.link_position), m.load(t, &work.new_link));
            m.scatter(t, &mut state.link, at, word, !m.is_negative(at));
            if !is_wide(p) {
                let slot = m.low_bits(word, p.slot_bits());
                m.set_life(t, &mut state.life, slot, p.new_life(), !m.is_negative(word));
            }
        },
    );
}

/// Leaves in `work.dead` the slots of misses that found a link and lost it to a later one, and what they need
/// to look once more: they are few, and only their ids are gathered.
#[inline(always)]
fn collect_overwritten<M: Machine, S: Schedule>(
    m: M,
    p: &Params,
    state: &State<'_, M>,
    work: &mut Work<'_, M, S>,
) {
    m.phase(Phase::UpdateState, "misses whose link went to a later one.");
    let n = m.name_scalar("claims", m.len(&work.dead));
    m.clear(&mut work.dead);
    m.sweep(
        n,
        #[inline(always)]
        |t| {
            let (at, word) = (m.load(t, &work.link_position), m.load(t, &work.new_link));
            let slot = m.name_vector("victim", m.low_bits(word, p.slot_bits()));
            let lost = !m.eq(m.gather(&state.link, at), word) & !m.is_negative(at);
            m.append(t, &mut work.dead, lost, [slot]);
        },
    );
    m.sweep(
        m.len(&work.dead),
        #[inline(always)]
        |t| {
            let slot = m.item(t, &work.dead, 0);
            let x = m.gather(&state.id, slot);
            let mixed = hash::mixed(m, p, x);
            m.store(t, &mut work.sequence, hash::sequence(m, p, x, mixed));
            m.store(t, &mut work.new_link, hash::link_word(m, p, mixed, slot));
        },
    );
}
