//! UpdateState: a slot and a link for every miss (Algorithm 1, last part).
//!
//! 1. mark the victims' lifetimes dead, so that links to them can be taken;
//! 2. find, per miss, the first of its R + 1 links that is reusable: never used, or its slot is dead, or
//!    (`wide`) its print is not that of the id in its slot, so it is left over from an earlier owner;
//! 3. write ids and new lifetimes, *then* the links: were a link written first, a later token could
//!    take the slot behind it;
//! 4. (`wide`) misses whose link was overwritten by a later miss look once more. In `paper` they keep
//!    their slot and lose the mapping: their ids will be fetched again.
//!
//! Two misses that take one link write it in list order, so one whole word survives.

use crate::hash;
use crate::machine::Machine;
use crate::params::{Params, Table};
use crate::stage_one::Work;
use crate::state::{DEAD, INVALID, State};

/// Gives `work.miss` the slots of `work.dead` and enters them into the Hash-State.
#[inline(always)]
pub fn update_state<M: Machine>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &mut Work<'_, M>,
) {
    let n = m.len(&work.miss);
    m.clear(&mut work.seek);
    m.sweep(
        n,
        #[inline(always)]
        |t| {
            let (x, lane) = (m.item(t, &work.miss, 0), m.item(t, &work.miss, 1));
            let slot = m.item(t, &work.dead, 0);
            let all = !m.neg(slot);
            m.set_life(t, &mut state.life, slot, DEAD, all);
            m.scatter(t, &mut work.slot, lane, slot, all);
            m.append(t, &mut work.seek, all, [x, slot]);
        },
    );
    seek(m, p, state, work);
    m.sweep(
        n,
        #[inline(always)]
        |t| {
            let (x, slot) = (m.item(t, &work.miss, 0), m.item(t, &work.dead, 0));
            let all = !m.neg(slot);
            m.scatter(t, &mut state.id, slot, x, all);
            m.set_life(t, &mut state.life, slot, p.new_life(), all);
        },
    );
    claim(m, state, work);
    if p.table == Table::Wide {
        m.sweep(
            m.len(&work.claim),
            #[inline(always)]
            |t| {
                let (at, word) = (m.item(t, &work.claim, 0), m.item(t, &work.claim, 1));
                let slot = m.low(word, p.slot_bits());
                let lost = !m.eq(m.gather(&state.link, at), word);
                m.append(t, &mut work.seek, lost, [m.gather(&state.id, slot), slot]);
            },
        );
        seek(m, p, state, work);
        claim(m, state, work);
    }
}

/// Moves `work.seek` (id, slot) to `work.claim` (link position, word), where a link is reusable.
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
                    let (x, slot) = (m.item(t, &work.seek, 0), m.item(t, &work.seek, 1));
                    let at = hash::nth(m, p, x, r);
                    let free = reusable(m, p, state, m.gather(&state.link, at));
                    m.append(t, &mut work.claim, free, [at, hash::word(m, p, x, slot)]);
                    m.append(t, &mut work.seek_next, !free, [x, slot]);
                },
            );
            m.take(&mut work.seek, &mut work.seek_next);
        },
    );
    m.clear(&mut work.seek);
}

/// Which links may be taken.
#[inline(always)]
fn reusable<M: Machine>(m: M, p: &Params, state: &State<'_, M>, link: M::V) -> M::Mask {
    let unused = m.eq_to(link & INVALID, INVALID);
    let slot = m.low(link, p.slot_bits());
    let life = m.life_at(&state.life, slot);
    let dead = match p.table {
        Table::Paper { .. } => m.neg(life),
        Table::Wide => m.eq_to(life, i32::from(DEAD)),
    };
    let print = m.low(m.shr(link, p.slot_bits()), p.print_bits());
    let owner = hash::print(m, p, m.gather(&state.id, slot));
    unused | dead | !m.eq(print, owner)
}

/// Writes the claimed links, in list order.
#[inline(always)]
fn claim<M: Machine>(m: M, state: &mut State<'_, M>, work: &Work<'_, M>) {
    m.sweep(
        m.len(&work.claim),
        #[inline(always)]
        |t| {
            let (at, word) = (m.item(t, &work.claim, 0), m.item(t, &work.claim, 1));
            let all = !m.neg(word);
            m.scatter(t, &mut state.link, at, word, all);
        },
    );
}
