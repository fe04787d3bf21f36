//! The schedule of GPUs: a thread has a lane, and examines all links of its id.
//!
//! A thread of a GPU can leave a search at the first link that matches, and a scattered write costs
//! as much as any other. So all ids are searched at once by [`Machine::find`], hits are refreshed
//! before victims are chosen, and no list holds the ids that are still sought. Threads of a block
//! wait for each other where a list is made, so there are few lists, and a token without a miss does
//! nothing else. It serves the `wide` table with probe sequences that fit a word.

use super::order::find_values;
use super::probe::selected;
use super::refresh::refresh;
use super::request::Request;
use super::schedule::{Schedule, Work, sequences};
use super::update_state::{fill_victims, is_wide, link_misses};
use crate::machine::Machine;
use crate::machine::control::{sweep, when};
use crate::machine::declare::Columns;
use crate::machine::phase::Phase;
use crate::table::hash;
use crate::table::params::Params;
use crate::table::state::State;

/// The schedule in which each thread examines all links of an id.
#[derive(Clone, Copy, Debug)]
pub struct Simt;

impl Simt {
    /// Returns whether this schedule serves a table: `wide`, with probe sequences that fit a word.
    pub fn serves(p: &Params) -> bool {
        is_wide(p) && hash::sequence_fits(p)
    }
}

/// The word that is sought in place of an id that is not valid. No slot holds it.
const NOT_VALID: i32 = -2;

/// The working columns that only [`Simt`] uses.
pub struct Extra<'a, M: Machine> {
    /// The probe sequences of the ids of a token.
    pub id_sequence: M::Column<'a>,
    /// The ids of a token, with [`NOT_VALID`] in place of those that are not valid.
    pub sought: M::Column<'a>,
}

impl Schedule for Simt {
    type Extra<'a, M: Machine> = Extra<'a, M>;
    const EXTRA_COLUMNS: usize = 2;
    const SCATTERS_POSITIONS: bool = false;

    #[inline(always)]
    fn declare<'a, M: Machine>(p: &Params, c: &mut impl Columns<'a, M>) -> Extra<'a, M> {
        Extra {
            id_sequence: c.column("id_sequence", p.k, sequences(p)),
            sought: c.column("sought", p.k, NOT_VALID..=i32::MAX),
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
        m.phase(Phase::Probe, "all links of each id, and the ids that have no slot");
        let (k, limit) = (request.k, request.limit);
        let from = request.ids.at + request.ids.stride * token;
        m.copy_in(&mut work.ids, &request.ids.words, from, k);
        sweep!(m, k, |t| {
            let (_, x, valid) = selected(m, t, &work.ids, limit);
            m.store(t, &mut work.extra.sought, m.select(valid, x, m.splat(NOT_VALID)));
            let sequence = hash::sequence(m, p, x, hash::mixed(m, p, x));
            m.store(t, &mut work.extra.id_sequence, sequence);
        });
        let queries = [&work.extra.id_sequence, &work.extra.sought];
        m.find(&hash::links(p), &mut work.slot, queries, k, [&state.link, &state.id]);
        m.clear(&mut work.pending);
        m.clear(&mut work.invalid);
        sweep!(m, k, |t| {
            let (id, x, valid) = selected(m, t, &work.ids, limit);
            let missing = m.name_mask("missing", m.eq_to(m.load(t, &work.slot), -1) & valid);
            m.append(t, &mut work.pending, missing, [x, m.iota(t)]);
            m.append(t, &mut work.invalid, !valid, [id]);
        });
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
        let some = m.name_scalar("someMiss", m.gt(m.len(&work.miss), m.scalar(0)));
        m.phase(Phase::UpdateState, "the misses enter the victims");
        when!(m, some, || fill_victims(m, p, state, work, token));
        let at = request.slot.at + request.slot.stride * token;
        m.copy_out(&mut request.slot.words, at, &work.slot, request.k);
        m.phase(Phase::UpdateState, "a link for every miss");
        when!(m, some, || link_misses(m, p, state, work, |m, state, work| {
            let (links, n) = (hash::links(p), m.len(&work.dead));
            let table = [&state.link, &state.id];
            m.find_free(&links, &mut work.link_position, &work.sequence, n, table);
        }));
    }
}
