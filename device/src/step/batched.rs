//! The schedule of vector cores: all links of an id are examined at once, several cores may share a
//! token, and the refresh of hits is deferred. It serves the `wide` table.
//!
//! **Sharing.** Probe only reads the table, and its lanes are independent. So where requests are
//! few, each core of a request probes a share of its first token and writes the slots that it finds
//! to the place of the token's slots in global memory. The core that owns the request waits for the
//! others, reads the whole row, and continues with the ids that were not found; the other cores are
//! finished. Later tokens depend on what the first one changed, so the owner probes them alone.
//!
//! **Deferral.** A scattered write is a scalar one on these machines, so the refresh of all hits
//! would be the longest part of the work before the miss list is published. Nearly all of it can
//! wait until then, and other cores can help: [`refresh_deferred`] takes any part of the slots. Let
//! b be the least t with count(life <= t) >= n_g + [`MAX_EARLY_HITS`]. If at most
//! [`MAX_EARLY_HITS`] hits have a lifetime of at most b, then n_g slots up to b are not hits, and
//! no victim has a lifetime above b. A refresh raises a lifetime, so a hit above b is no victim
//! before or after its refresh, and no count up to b includes it. Hence the result is the same to
//! the last bit (`tests/kernels/deferral.rs`). If there are more such hits, as there are with S =
//! K, all hits are refreshed at once. The `paper` table cannot defer, because its additional decays
//! act on lifetimes that were refreshed before.

use super::probe::{probe, selected};
use super::refresh::{refresh, refresh_listed};
use super::request::Request;
use super::schedule::{IDS, INVALID_ID, Schedule, Work, sequences};
use crate::machine::Machine;
use crate::machine::declare::Columns;
use crate::machine::phase::Phase;
use crate::table::hash;
use crate::table::params::{ID_LIMIT, Lifetime, Params, Table};
use crate::table::state::{State, header};

/// The largest number of hits up to b that may be refreshed early while the others are deferred.
/// Real traces have a handful.
pub const MAX_EARLY_HITS: i32 = 64;

/// The schedule that examines all links of an id at once and defers refreshes.
#[derive(Clone, Copy, Debug)]
pub struct Batched;

/// The working columns that only [`Batched`] uses.
pub struct Extra<'a, M: Machine> {
    /// The probe sequences of the ids in this core's share of a token.
    pub share_sequence: M::Column<'a>,
    /// The ids in this core's share of a token, [`INVALID_ID`] for one that is not valid.
    pub share_id: M::Column<'a>,
}

impl Batched {
    /// Returns whether this schedule serves a table: `wide`, with probe sequences that fit a word.
    pub fn serves(p: &Params) -> bool {
        p.table == Table::Wide && hash::sequence_fits(p)
    }
}

impl Schedule for Batched {
    type Extra<'a, M: Machine> = Extra<'a, M>;
    const EXTRA_COLUMNS: usize = 2;

    #[inline(always)]
    fn declare<'a, M: Machine>(p: &Params, c: &mut impl Columns<'a, M>) -> Extra<'a, M> {
        Extra {
            share_sequence: c.column("share_sequence", p.k, sequences(p)),
            share_id: c.column("share_id", p.k, INVALID_ID..=*IDS.end()),
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
        let from = m.name_scalar("from", request.ids.at + request.ids.stride * token);
        // Only the first token may be shared.
        let shared = m.name_scalar("shared", m.gt(request.share.shared, token));
        m.when(
            shared,
            #[inline(always)]
            || {
                m.phase(Phase::Probe, "this core's share of a token");
                // The owner's share is the first one, so the owner fetches all ids.
                let share_at = request.share.at;
                m.fetch(&mut work.ids, &request.ids.words, from + share_at, request.k - share_at);
                probe_share(m, p, state, work, request);
                m.phase(Phase::ProbePending, "the ids that no core found");
                m.clear(&mut work.pending);
                m.clear(&mut work.invalid);
                classify(m, work, request.k);
            },
        );
        m.when(
            m.not(shared),
            #[inline(always)]
            || {
                m.phase(Phase::Probe, "the first links of each id");
                m.fetch(&mut work.ids, &request.ids.words, from, request.k);
                // Two links are examined at a time if their number is even: half the rounds, for
                // more gathers.
                probe(m, p, state, work, request.k, request.limit, p.retries % 2 == 1);
            },
        );
    }

    #[inline(always)]
    fn refresh<M: Machine>(
        m: M,
        p: &Params,
        state: &mut State<'_, M>,
        work: &mut Work<'_, M, Self>,
        request: &Request<'_, M>,
        token: M::Scalar,
    ) {
        m.phase(Phase::Refresh, "hits that could be chosen as victims");
        let at_once = m.name_scalar("atOnce", m.ne(token + 1, request.deferred));
        m.clear(&mut work.dead);
        m.when(
            m.not(at_once),
            #[inline(always)]
            || collect_early_hits(m, state, work, request.k),
        );
        m.phase(Phase::Refresh, "either all hits, or only those that could be chosen as victims");
        let all = m.name_scalar(
            "refreshAll",
            m.max(at_once, m.gt(m.len(&work.dead), m.scalar(MAX_EARLY_HITS))),
        );
        m.when(
            all,
            #[inline(always)]
            || refresh(m, p, state, work, request.k),
        );
        m.when(
            m.not(all),
            #[inline(always)]
            || refresh_listed(m, p, state, work),
        );
    }

    #[inline(always)]
    fn set_new<M: Machine>(
        m: M,
        p: &Params,
        tile: M::Tile,
        state: &mut State<'_, M>,
        slot: M::V,
        all: M::Mask,
    ) {
        // A new slot whose refresh is deferred keeps the lifetime of the victim until then. Under a
        // constant rule no other value is needed.
        if let Lifetime::Frequency(f) = &p.lifetime {
            m.set_life(tile, &mut state.life, slot, f.new, all);
        }
    }

    #[inline(always)]
    fn refresh_new<M: Machine>(
        m: M,
        p: &Params,
        state: &mut State<'_, M>,
        work: &mut Work<'_, M, Self>,
        request: &Request<'_, M>,
        token: M::Scalar,
    ) {
        // Under a constant rule, a new slot has the lifetime of one that was hit.
        if let Lifetime::Constant(_) = p.lifetime {
            m.when(
                m.ne(token + 1, request.deferred),
                #[inline(always)]
                || refresh_listed(m, p, state, work),
            );
        }
    }

    #[inline(always)]
    fn find_links<M: Machine>(
        m: M,
        p: &Params,
        state: &State<'_, M>,
        work: &mut Work<'_, M, Self>,
    ) {
        let n = m.len(&work.dead);
        let table = [&state.link, &state.id];
        m.find_free(&hash::links(p), &mut work.link_position, &work.sequence, n, table);
    }
}

/// Collects the hits that could be chosen as victims in `work.dead`.
#[inline(always)]
fn collect_early_hits<M: Machine>(
    m: M,
    state: &State<'_, M>,
    work: &mut Work<'_, M, Batched>,
    k: M::Scalar,
) {
    let need = m.name_scalar("need", m.len(&work.miss));
    // Without misses there are no victims.
    m.when(
        m.gt(need, m.scalar(0)),
        #[inline(always)]
        || {
            let hint =
                m.name_scalar("hint", m.read_output(&state.header, m.scalar(header::THRESHOLD)));
            let life = &state.life;
            let bound = m.bisect(
                hint,
                need + MAX_EARLY_HITS,
                #[inline(always)]
                |t| m.count_le(life, t),
            );
            let bound = m.name_scalar("bound", bound);
            let above = bound + 1;
            m.sweep(
                k,
                #[inline(always)]
                |t| {
                    let slot = m.load(t, &work.slot);
                    let early = m.is_negative(m.gather_life(life, slot) - above);
                    m.append(t, &mut work.dead, early & !m.is_negative(slot), [slot]);
                },
            );
        },
    );
}

/// Probes this core's share of a token, which is at the front of `work.ids`, and waits for the
/// other cores. Then `work.slot` holds the slots of the whole token, -1 for a miss and
/// [`INVALID_ID`] for an id that is not valid.
#[inline(always)]
fn probe_share<M: Machine>(
    m: M,
    p: &Params,
    state: &State<'_, M>,
    work: &mut Work<'_, M, Batched>,
    request: &mut Request<'_, M>,
) {
    let n = request.share.len;
    m.sweep(
        n,
        #[inline(always)]
        |t| {
            let (_, x, valid) = selected(m, t, &work.ids, request.limit);
            let sequence = hash::sequence(m, p, x, hash::mixed(m, p, x));
            m.store(t, &mut work.extra.share_sequence, sequence);
            m.store(t, &mut work.extra.share_id, m.select(valid, x, m.splat(INVALID_ID)));
        },
    );
    let queries = [&work.extra.share_sequence, &work.extra.share_id];
    m.find(&hash::links(p), &mut work.slot, queries, n, [&state.link, &state.id]);
    m.sweep(
        n,
        #[inline(always)]
        |t| {
            let not_valid = m.eq_to(m.load(t, &work.extra.share_id), INVALID_ID);
            let slot = m.load(t, &work.slot);
            m.store(t, &mut work.slot, m.select(not_valid, m.splat(INVALID_ID), slot));
        },
    );
    m.phase(Phase::Probe, "exchange of the cores' shares");
    let (at, k) = (request.slot.at, request.k);
    m.share(&mut work.slot, &mut request.slot.words, at, request.share.at, n, k);
}

/// Classifies the first `n` ids of a shared token by their slots. An id with slot -1 is appended to
/// `work.pending` with its lane, one with slot [`INVALID_ID`] to `work.invalid`. Both have slot -1
/// afterwards.
#[inline(always)]
fn classify<M: Machine>(m: M, work: &mut Work<'_, M, Batched>, n: M::Scalar) {
    m.sweep(
        n,
        #[inline(always)]
        |t| {
            let (id, slot) = (m.load(t, &work.ids), m.load(t, &work.slot));
            // A pending id is valid, so it is below ID_LIMIT. Other lanes are not appended.
            let x = m.low_bits(id, ID_LIMIT.ilog2());
            m.append(t, &mut work.pending, m.eq_to(slot, -1), [x, m.iota(t)]);
            m.append(t, &mut work.invalid, m.eq_to(slot, INVALID_ID), [id]);
            m.store(t, &mut work.slot, m.select(m.is_negative(slot + 1), m.splat(-1), slot));
        },
    );
}

/// Refreshes the slots of a token that [`Batched`] deferred, as bytes of a table. New slots are
/// among them: the rule of a hit gives them the lifetime of a new slot. A slot of -1 belongs to an
/// id that is not valid.
pub fn refresh_deferred(p: &Params, life: &mut [i8], slots: &[i32]) {
    for &slot in slots {
        let Some(life) = usize::try_from(slot).ok().and_then(|slot| life.get_mut(slot)) else {
            continue;
        };
        *life = match &p.lifetime {
            Lifetime::Constant(l) => *l,
            Lifetime::Frequency(f) => f.hit[usize::from(life.cast_unsigned())],
        };
    }
}
