//! The schedule of GPUs: a thread has a lane, and examines all links of its id.
//!
//! A thread of a GPU can leave a search at the first link that matches, and a scattered write costs
//! as much as any other. So all ids are searched at once by [`Machine::find`], hits are refreshed
//! before victims are chosen, and no list holds the ids that are still sought. Threads of a block
//! wait for each other where a list is made, so there are few lists, and a token without a miss does
//! nothing else. It serves the `wide` table with probe sequences that fit a word.

use super::probe::{copy_ids, selected};
use super::refresh::refresh_first;
use super::schedule::{Schedule, Step, sequences};
use super::update_state::{is_wide, update};
use crate::machine::Machine;
use crate::machine::control::sweep;
use crate::machine::declare::Columns;
use crate::machine::phase::Phase;
use crate::table::hash;
use crate::table::params::Params;

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
    const SHARES: bool = false;
    const SCATTERS_POSITIONS: bool = false;

    #[inline(always)]
    fn declare<'a, M: Machine>(p: &Params, c: &mut impl Columns<'a, M>) -> Extra<'a, M> {
        Extra {
            id_sequence: c.column("id_sequence", p.k, sequences(p)),
            sought: c.column("sought", p.k, NOT_VALID..=i32::MAX),
        }
    }

    #[inline(always)]
    fn probe<M: Machine>(s: &mut Step<'_, '_, M, Self>) {
        s.m.phase(Phase::Probe, "all links of each id, and the ids that have no slot");
        copy_ids(s);
        let Step { m, p, state, work, request, .. } = s;
        let (k, limit) = (request.k, request.limit);
        sweep!(m, k, |t| {
            let (_, x, valid) = selected(*m, t, &work.ids, limit);
            m.store(t, &mut work.extra.sought, m.select(valid, x, m.splat(NOT_VALID)));
            let sequence = hash::sequence(*m, p, x, hash::mixed(*m, p, x));
            m.store(t, &mut work.extra.id_sequence, sequence);
        });
        let queries = [&work.extra.id_sequence, &work.extra.sought];
        m.find(&hash::links(p), &mut work.slot, queries, k, [&state.link, &state.id]);
        m.clear(&mut work.pending);
        m.clear(&mut work.invalid);
        sweep!(m, k, |t| {
            let (id, x, valid) = selected(*m, t, &work.ids, limit);
            let missing = m.name_mask("missing", m.eq_to(m.load(t, &work.slot), -1) & valid);
            m.append(t, &mut work.pending, missing, [x, m.iota(t)]);
            m.append(t, &mut work.invalid, !valid, [id]);
        });
    }

    #[inline(always)]
    fn refresh<M: Machine>(s: &mut Step<'_, '_, M, Self>) {
        refresh_first(s);
    }

    #[inline(always)]
    fn update<M: Machine>(s: &mut Step<'_, '_, M, Self>) {
        update(s, |s| {
            let (n, table) = (s.m.len(&s.work.dead), [&s.state.link, &s.state.id]);
            s.m.find_free(&hash::links(s.p), &mut s.work.link_position, &s.work.sequence, n, table);
        });
    }
}
