//! The schedule of CPUs: hits are refreshed before victims are chosen, and the links of an id are
//! examined one by one, because every lane that is left out saves time.

use super::probe::{copy_ids, other_links, probe};
use super::refresh::refresh_first;
use super::schedule::{Schedule, Step, lanes, sequences};
use super::update_state::{reusable, update};
use crate::machine::Machine;
use crate::machine::control::sweep;
use crate::machine::declare::Columns;
use crate::machine::phase::Phase;
use crate::table::hash;
use crate::table::params::Params;

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
        refresh_first(s);
    }

    #[inline(always)]
    fn update<M: Machine>(s: &mut Step<'_, '_, M, Self>) {
        update(
            s,
            #[inline(always)]
            |s| find_links(s),
        );
    }
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
