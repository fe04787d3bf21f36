//! UpdateState: a slot and a link for every miss (Algorithm 1, last part).
//!
//! 1. `occupy`: write the misses' ids into the victims, and their lifetimes: `wide` those of new slots,
//!    `paper` that of a dead slot, so that links to it can be taken;
//! 2. `link`: find, per miss, the first of its R + 1 links that is reusable: never used, or left over
//!    from an earlier owner of its slot, which its print tells, or (`paper`) its slot is dead;
//! 3. write these links, and (`paper`) the lifetimes of new slots: without them, a later token could
//!    take the slot behind the link;
//! 4. (`wide`) misses whose link was overwritten by a later miss look once more. In `paper` they keep
//!    their slot and lose the mapping: their ids will be fetched again.
//!
//! Two misses that take one link write it in list order, so one whole word survives.
//!
//! A victim holds its new id before links are searched. So to `wide` a link to a victim is a left-over as
//! any other: whether it is dead need not be asked, and need not be written.

use crate::defer::Refresh;
use crate::hash;
use crate::machine::Machine;
use crate::params::{Params, Table};
use crate::stage_one::Work;
use crate::state::{DEAD, State};

/// Gives `work.miss` the slots of `work.dead`: into `work.slot` and into the slots' ids; their ways and new links
/// to `work.way` and `work.new_link`. Lifetimes are left out if `lives` is false.
#[inline(always)]
pub fn occupy<M: Machine>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &mut Work<'_, M>,
    token: M::Scalar,
    lives: bool,
) {
    let life = if is_wide(p) { p.new_life() } else { DEAD };
    let first = token * m.scalar(p.k as i32);
    m.sweep(
        m.len(&work.miss),
        #[inline(always)]
        |t| {
            let (x, position) = (m.item(t, &work.miss, 0), m.item(t, &work.miss, 1));
            let slot = m.item(t, &work.dead, 0);
            let all = !m.neg(slot);
            if lives {
                m.set_life(t, &mut state.life, slot, life, all);
            }
            let lane = position - first;
            m.scatter(t, &mut state.id, slot, x, all);
            m.scatter(t, &mut work.slot, lane, slot, all);
            let mixed = hash::mixed(m, p, x);
            let word = hash::word(m, p, mixed, slot);
            m.store(t, &mut work.way, hash::way(m, p, x, mixed));
            m.store(t, &mut work.new_link, word);
        },
    );
}

/// Enters `work.new_link` into the links, as many as `work.dead` is long. `wide` does it twice: the second time for race losers.
#[inline(always)]
pub fn link<M: Machine>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &mut Work<'_, M>,
    when: Refresh,
) {
    let rounds = 1 + u32::from(is_wide(p));
    m.repeat(
        rounds,
        m.scalar(rounds as i32),
        #[inline(always)]
        |_| {
            if when.searches(p) {
                m.find_free(p, &mut work.at, &work.way, m.len(&work.dead), state);
            } else {
                seek(m, p, state, work);
            }
            claim(m, p, state, work);
            if is_wide(p) {
                lost(m, p, state, work);
            }
        },
    );
}

/// Finds for each of `work.way` the first link that is reusable: its position to `work.at`, -1 where none is.
#[inline(always)]
fn seek<M: Machine>(m: M, p: &Params, state: &State<'_, M>, work: &mut Work<'_, M>) {
    m.clear(&mut work.open);
    m.clear(&mut work.open_next);
    m.sweep(
        m.len(&work.dead),
        #[inline(always)]
        |t| {
            let way = m.load(t, &work.way);
            let at = hash::begin(m, p, way);
            let free = reusable(m, p, state, m.gather(&state.link, at));
            m.store(t, &mut work.at, m.select(free, at, m.splat(-1)));
            m.append(t, &mut work.open, !free, [way, m.iota(t)]);
        },
    );
    m.repeat(
        p.retries,
        m.scalar(p.retries as i32),
        #[inline(always)]
        |r| {
            m.sweep(
                m.len(&work.open),
                #[inline(always)]
                |t| {
                    let (way, n) = (m.item(t, &work.open, 0), m.item(t, &work.open, 1));
                    let at = hash::along(m, p, way, r + 1);
                    let free = reusable(m, p, state, m.gather(&state.link, at));
                    m.scatter(t, &mut work.at, n, at, free);
                    m.append(t, &mut work.open_next, !free, [way, n]);
                },
            );
            m.take(&mut work.open, &mut work.open_next);
        },
    );
}

/// Which links may be taken. One that was never used has the invalid bit above its print, and so the
/// print of no id.
#[inline(always)]
pub fn reusable<M: Machine>(m: M, p: &Params, state: &State<'_, M>, link: M::V) -> M::Mask {
    let slot = m.low(link, p.slot_bits());
    let print = m.shr(link, p.slot_bits());
    let owner = hash::print(m, p, hash::mixed(m, p, m.gather(&state.id, slot)));
    let free = !m.eq(print, owner);
    if is_wide(p) { free } else { free | m.neg(m.life_at(&state.life, slot)) }
}

/// Whether a table is `wide`: known when a kernel is recorded or compiled for.
#[inline(always)]
fn is_wide(p: &Params) -> bool {
    p.table == Table::Wide
}

/// Writes the links that were found, in list order, and (`paper`) the lifetimes of all new slots, with a
/// link or without.
#[inline(always)]
fn claim<M: Machine>(m: M, p: &Params, state: &mut State<'_, M>, work: &Work<'_, M>) {
    m.sweep(
        m.len(&work.dead),
        #[inline(always)]
        |t| {
            let (at, word) = (m.load(t, &work.at), m.load(t, &work.new_link));
            m.scatter(t, &mut state.link, at, word, !m.neg(at));
            if !is_wide(p) {
                let slot = m.low(word, p.slot_bits());
                m.set_life(t, &mut state.life, slot, p.new_life(), !m.neg(word));
            }
        },
    );
}

/// Leaves in `work.dead` the slots of misses that found a link and lost it to a later one, and what they need
/// to look once more: they are few, and only their ids are gathered.
#[inline(always)]
fn lost<M: Machine>(m: M, p: &Params, state: &State<'_, M>, work: &mut Work<'_, M>) {
    let n = m.len(&work.dead);
    m.clear(&mut work.dead);
    m.sweep(
        n,
        #[inline(always)]
        |t| {
            let (at, word) = (m.load(t, &work.at), m.load(t, &work.new_link));
            let slot = m.low(word, p.slot_bits());
            let lost = !m.eq(m.gather(&state.link, at), word) & !m.neg(at);
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
            m.store(t, &mut work.way, hash::way(m, p, x, mixed));
            m.store(t, &mut work.new_link, hash::word(m, p, mixed, slot));
        },
    );
}
