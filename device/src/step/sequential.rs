//! The schedule of CPUs: hits are refreshed before victims are chosen, and the links of an id are
//! examined one by one, because every lane that is left out saves time.

use super::order::find_values;
use super::probe::{other_links, probe};
use super::refresh::refresh;
use super::request::Request;
use super::schedule::{Schedule, Work, lanes, sequences};
use super::update_state::{fill_victims, link_misses, reusable};
use crate::machine::Machine;
use crate::machine::control::sweep;
use crate::machine::declare::Columns;
use crate::machine::phase::Phase;
use crate::table::hash;
use crate::table::params::Params;
use crate::table::state::State;

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
    fn probe<M: Machine>(
        m: M,
        p: &Params,
        state: &State<'_, M>,
        work: &mut Work<'_, M, Self>,
        request: &mut Request<'_, M>,
        token: M::Scalar,
    ) {
        m.phase(Phase::Probe, "the first link of each id");
        let from = request.ids.at + request.ids.stride * token;
        m.copy_in(&mut work.ids, &request.ids.words, from, request.k);
        probe(m, p, state, work, request.k, request.limit);
    }

    #[inline(always)]
    fn refresh<M: Machine>(
        m: M,
        p: &Params,
        state: &mut State<'_, M>,
        work: &mut Work<'_, M, Self>,
        request: &Request<'_, M>,
        _token: M::Scalar,
    ) {
        m.phase(Phase::Refresh, "the lifetimes of the hits");
        refresh(m, p, state, work, request.k);
        find_values(m, state, work);
    }

    #[inline(always)]
    fn update<M: Machine>(
        m: M,
        p: &Params,
        state: &mut State<'_, M>,
        work: &mut Work<'_, M, Self>,
        request: &mut Request<'_, M>,
        token: M::Scalar,
    ) {
        m.phase(Phase::UpdateState, "the misses enter the victims");
        fill_victims(m, p, state, work, token);
        let at = request.slot.at + request.slot.stride * token;
        m.copy_out(&mut request.slot.words, at, &work.slot, request.k);
        m.phase(Phase::UpdateState, "a link for every miss");
        link_misses(
            m,
            p,
            state,
            work,
            #[inline(always)]
            |m, state, work| find_links(m, p, state, work),
        );
    }
}

/// Finds the first reusable link of each probe sequence in `work.sequence`, for as many as `work.dead`
/// has entries, and writes its position to `work.link_position`, or -1 if there is none.
#[inline(always)]
fn find_links<M: Machine>(
    m: M,
    p: &Params,
    state: &State<'_, M>,
    work: &mut Work<'_, M, Sequential>,
) {
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
