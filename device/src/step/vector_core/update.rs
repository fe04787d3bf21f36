//! UpdateState in an order in which the units of a vector core work beside each other.
//!
//! The scalar unit makes the scattered writes of a vector core, one by one, and the vector unit searches
//! for links. The two work at the same time where neither needs the other's results:
//!
//! | scalar unit | vector unit |
//! |---|---|
//! | the ids of the misses enter the victims | probe sequences, and the links that they lead to |
//! | the slots of the misses reach their lanes | which of these links are reusable, and the new links |
//! | the new links are written | |
//!
//! So each column of scattered words has a sweep of its own, and the sweeps stand in this order.

use super::columns::VectorCore;
use crate::machine::Machine;
use crate::machine::control::{repeat, sweep, when};
use crate::machine::phase::Phase;
use crate::step::refresh::refresh_listed;
use crate::step::schedule::Step;
use crate::step::update_state::{collect_overwritten, copy_slots_out, write_links};
use crate::table::hash;
use crate::table::learned::NEW;
use crate::table::params::Lifetime;

/// Does what [`crate::step::schedule::Schedule::update`] says.
#[inline(always)]
pub fn update<M: Machine>(step: &mut Step<'_, '_, M, VectorCore>) {
    let Step { m, p, state, work, token, .. } = step;
    let (m, p, token) = (*m, *p, *token);
    m.phase(Phase::UpdateState, "the ids of the misses enter the victims");
    sweep!(m, m.len(&work.miss), |t| {
        let x = m.item(t, &work.miss, 0);
        let mixed = hash::mixed(m, p, x);
        m.store(t, &mut work.sequence, hash::sequence(m, p, x, mixed));
    });
    sweep!(m, m.len(&work.miss), |t| {
        let (x, slot) = (m.item(t, &work.miss, 0), m.item(t, &work.dead, 0));
        m.scatter(t, &mut state.id, slot, x, !m.is_negative(slot));
    });
    m.phase(Phase::UpdateState, "a link for every miss, and the slots of the misses");
    let (links, n) = (hash::links(p), m.len(&work.dead));
    let table = [&state.link, &state.id];
    m.find_free(&links, &mut work.link_position, &work.sequence, n, table);
    sweep!(m, m.len(&work.miss), |t| {
        let (x, slot) = (m.item(t, &work.miss, 0), m.item(t, &work.dead, 0));
        m.store(t, &mut work.new_link, hash::link_word(m, p, hash::mixed(m, p, x), slot));
    });
    let first = m.name_scalar("first", token * m.scalar(p.k as i32));
    sweep!(m, m.len(&work.miss), |t| {
        let (position, slot) = (m.item(t, &work.miss, 1), m.item(t, &work.dead, 0));
        let lane = m.name_vector("lane", position - first);
        m.scatter(t, &mut work.slot, lane, slot, !m.is_negative(slot));
    });
    refresh_new(step);
    repeat!(m, 2, m.scalar(2), |round| {
        write_links(step);
        // Nothing follows the second search.
        when!(m, m.ne(round, m.scalar(1)), || {
            let (state, work) = (&*step.state, &mut *step.work);
            let (found, second) = (&work.link_position, &mut work.extra.second_sequence);
            collect_overwritten(m, p, state, &mut work.dead, found, [&mut work.new_link, second]);
            let (table, n) = ([&state.link, &state.id], m.len(&work.dead));
            let second = &work.extra.second_sequence;
            m.find_free(&links, &mut work.link_position, second, n, table);
        });
    });
    copy_slots_out(step);
}

/// Sets the lifetimes of the new slots. A new slot whose refresh is deferred keeps the lifetime of the
/// victim until then under a constant rule, which needs no other value and gives it the lifetime of one
/// that was hit.
#[inline(always)]
fn refresh_new<M: Machine>(s: &mut Step<'_, '_, M, VectorCore>) {
    let m = s.m;
    match s.p.lifetime {
        Lifetime::Constant(_) => {
            when!(m, m.ne(s.token + 1, s.request.deferred), || refresh_listed(s));
        }
        Lifetime::Learned => sweep!(m, m.len(&s.work.dead), |t| {
            let slot = m.item(t, &s.work.dead, 0);
            m.set_life(t, &mut s.state.life, slot, NEW, !m.is_negative(slot));
        }),
    }
}
