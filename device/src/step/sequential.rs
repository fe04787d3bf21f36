//! The schedule of CPUs: hits are refreshed before victims are chosen, and the links of an id are
//! examined one by one, because every lane that is left out saves time.

use super::order::find_values;
use super::probe::{copy_ids, other_links, probe};
use super::refresh::refresh;
use super::schedule::{Schedule, Step, lanes, sequences};
use super::update_state::{collect_overwritten, copy_slots_out, is_wide, write_links};
use crate::machine::control::{repeat, sweep, when};
use crate::machine::declare::Columns;
use crate::machine::phase::Phase;
use crate::machine::{Machine, search};
use crate::table::hash;
use crate::table::params::Params;
use crate::table::state::{DEAD, State};

/// The schedule that examines one link of each id at a time.
#[derive(Clone, Copy, Debug)]
pub struct Sequential;

/// The working columns that only [`Sequential`] uses.
pub struct Extra<'a, M: Machine> {
    /// (probe sequence, entry of the miss) for the misses without a link so far.
    pub unlinked: M::List<'a, 2>,
    /// The same list for the next round.
    pub next_unlinked: M::List<'a, 2>,
}

impl Schedule for Sequential {
    type Extra<'a, M: Machine> = Extra<'a, M>;
    const EXTRA_COLUMNS: usize = 4;
    const SHARES: bool = false;
    const SCATTERS_POSITIONS: bool = true;

    #[inline(always)]
    fn declare<'a, M: Machine>(p: &Params, c: &mut impl Columns<'a, M>) -> Extra<'a, M> {
        let columns = || [("probes", sequences(p)), ("entry", lanes(p))];
        Extra {
            unlinked: c.list("unlinked", p.k, columns()),
            next_unlinked: c.list("next_unlinked", p.k, columns()),
        }
    }

    #[inline(always)]
    fn probe<M: Machine>(s: &mut Step<'_, '_, M, Self>) {
        s.m.phase(Phase::Probe, "the first link of each id");
        copy_ids(s);
        probe(s);
    }

    #[inline(always)]
    fn refresh<M: Machine>(s: &mut Step<'_, '_, M, Self>) {
        s.m.phase(Phase::Refresh, "the lifetimes of the hits");
        refresh(s);
        find_values(s);
    }

    #[inline(always)]
    fn update<M: Machine>(s: &mut Step<'_, '_, M, Self>) {
        let m = s.m;
        let some = m.name_scalar("someMiss", m.gt(m.len(&s.work.miss), m.scalar(0)));
        m.phase(Phase::UpdateState, "the misses enter the victims");
        when!(m, some, || fill_victims(s));
        copy_slots_out(s);
        m.phase(Phase::UpdateState, "a link for every miss");
        when!(m, some, || link_misses(s));
    }
}

/// Writes the slots of the misses into `work.slot`, their ids and lifetimes into the slots, and their
/// probe sequences and new links into `work.sequence` and `work.new_link`.
#[inline(always)]
fn fill_victims<M: Machine>(s: &mut Step<'_, '_, M, Sequential>) {
    let Step { m, p, state, work, token, .. } = s;
    let (m, token) = (*m, *token);
    let first = m.name_scalar("first", token * m.scalar(p.k as i32));
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
fn link_misses<M: Machine>(s: &mut Step<'_, '_, M, Sequential>) {
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
fn find_links<M: Machine>(s: &mut Step<'_, '_, M, Sequential>) {
    let Step { m, p, state, work, .. } = s;
    let (m, p) = (*m, *p);
    m.clear(&mut work.extra.unlinked);
    m.clear(&mut work.extra.next_unlinked);
    sweep!(m, m.len(&work.dead), |t| {
        let sequence = m.load(t, &work.sequence);
        let at = hash::first_in_sequence(m, p, sequence);
        let free = reusable(m, p, state, at);
        m.store(t, &mut work.link_position, m.select(free, at, m.splat(-1)));
        m.append(t, &mut work.extra.unlinked, !free, [sequence, m.iota(t)]);
    });
    let Extra { unlinked, next_unlinked } = &mut work.extra;
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
