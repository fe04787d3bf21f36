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

use crate::hash;
use crate::machine::Machine;
use crate::params::{Params, Table};
use crate::stage_one::Work;
use crate::state::{DEAD, INVALID, State};

/// Gives `work.miss` the slots of `work.dead`: into `work.slot`, into the slots' ids, and as (way,
/// word) into `work.seek`.
#[inline(always)]
pub fn occupy<M: Machine>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &mut Work<'_, M>,
    token: M::Scalar,
) {
    m.clear(&mut work.seek);
    let life = if is_wide(p) { p.new_life() } else { DEAD };
    let first = token * m.scalar(p.k as i32);
    m.sweep(
        m.len(&work.miss),
        #[inline(always)]
        |t| {
            let (x, position) = (m.item(t, &work.miss, 0), m.item(t, &work.miss, 1));
            let slot = m.item(t, &work.dead, 0);
            let all = !m.neg(slot);
            m.set_life(t, &mut state.life, slot, life, all);
            m.scatter(t, &mut state.id, slot, x, all);
            m.scatter(t, &mut work.slot, position - first, slot, all);
            let mixed = hash::mixed(m, p, x);
            let word = hash::word(m, p, mixed, slot);
            m.append(t, &mut work.seek, all, [hash::way(m, p, x, mixed), word]);
        },
    );
}

/// Enters `work.seek` into the links. `wide` does it twice: the second time for race losers.
#[inline(always)]
pub fn link<M: Machine>(m: M, p: &Params, state: &mut State<'_, M>, work: &mut Work<'_, M>) {
    let rounds = 1 + u32::from(is_wide(p));
    m.repeat(
        rounds,
        m.scalar(rounds as i32),
        #[inline(always)]
        |_| {
            seek(m, p, state, work);
            claim(m, p, state, work);
            m.clear(&mut work.seek);
            if is_wide(p) {
                lost(m, p, state, work);
            }
        },
    );
}

/// Moves `work.seek` (way, word) to `work.claim` (link position, word), where a link is reusable; what
/// finds none stays.
#[inline(always)]
fn seek<M: Machine>(m: M, p: &Params, state: &State<'_, M>, work: &mut Work<'_, M>) {
    m.clear(&mut work.claim);
    m.clear(&mut work.seek_next);
    m.repeat(
        p.retries + 1,
        m.scalar(p.retries as i32 + 1),
        #[inline(always)]
        |r| {
            m.sweep(
                m.len(&work.seek),
                #[inline(always)]
                |t| {
                    let (way, word) = (m.item(t, &work.seek, 0), m.item(t, &work.seek, 1));
                    let at = hash::along(m, p, way, r);
                    let free = reusable(m, p, state, m.gather(&state.link, at));
                    m.append(t, &mut work.claim, free, [at, word]);
                    m.append(t, &mut work.seek_next, !free, [way, word]);
                },
            );
            m.take(&mut work.seek, &mut work.seek_next);
        },
    );
}

/// Which links may be taken.
#[inline(always)]
fn reusable<M: Machine>(m: M, p: &Params, state: &State<'_, M>, link: M::V) -> M::Mask {
    let unused = m.eq_to(link & INVALID, INVALID);
    let slot = m.low(link, p.slot_bits());
    let print = m.low(m.shr(link, p.slot_bits()), p.print_bits());
    let owner = hash::print(m, p, hash::mixed(m, p, m.gather(&state.id, slot)));
    let free = unused | !m.eq(print, owner);
    if is_wide(p) { free } else { free | m.neg(m.life_at(&state.life, slot)) }
}

/// Whether a table is `wide`: known when a kernel is recorded or compiled for.
#[inline(always)]
fn is_wide(p: &Params) -> bool {
    p.table == Table::Wide
}

/// Writes the claimed links, in list order, and (`paper`) the lifetimes of all new slots, with a link
/// or without.
#[inline(always)]
fn claim<M: Machine>(m: M, p: &Params, state: &mut State<'_, M>, work: &Work<'_, M>) {
    m.sweep(
        m.len(&work.claim),
        #[inline(always)]
        |t| {
            let (at, word) = (m.item(t, &work.claim, 0), m.item(t, &work.claim, 1));
            let all = !m.neg(word);
            m.scatter(t, &mut state.link, at, word, all);
            if !is_wide(p) {
                m.set_life(t, &mut state.life, m.low(word, p.slot_bits()), p.new_life(), all);
            }
        },
    );
    if is_wide(p) {
        return;
    }
    m.sweep(
        m.len(&work.seek),
        #[inline(always)]
        |t| {
            let word = m.item(t, &work.seek, 1);
            let slot = m.low(word, p.slot_bits());
            m.set_life(t, &mut state.life, slot, p.new_life(), !m.neg(word));
        },
    );
}

/// Moves claims whose link went to a later miss back to `work.seek`, by way of `work.dead`, which nobody
/// needs any more: they are few, and only their ids are gathered then.
#[inline(always)]
fn lost<M: Machine>(m: M, p: &Params, state: &State<'_, M>, work: &mut Work<'_, M>) {
    m.clear(&mut work.dead);
    m.sweep(
        m.len(&work.claim),
        #[inline(always)]
        |t| {
            let (at, word) = (m.item(t, &work.claim, 0), m.item(t, &work.claim, 1));
            let slot = m.low(word, p.slot_bits());
            let lost = !m.eq(m.gather(&state.link, at), word);
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
            let word = hash::word(m, p, mixed, slot);
            m.append(t, &mut work.seek, !m.neg(slot), [hash::way(m, p, x, mixed), word]);
        },
    );
}
