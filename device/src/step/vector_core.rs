//! The schedule of vector cores: Probe examines one link of all ids per pass, several cores may
//! share a token, and the refresh of hits is deferred. It serves the `wide` table.
//!
//! **Probe.** A pass examines one link of every id, also of those that are found already: on these
//! machines additional lanes cost little, and a list of the ids that are still sought would need a
//! scattered write, which is a scalar one, for each id that it finds.
//!
//! **Sharing.** Probe only reads the table, and its lanes are independent. So where requests are
//! few, each core of a request probes a share of its first token, all links of an id at once, and
//! writes the slots that it finds to the place of the token's slots in global memory. The core that
//! owns the request waits for the others, reads the whole row, and continues with the ids that were
//! not found; the other cores are finished. Later tokens depend on what the first one changed, so
//! the owner probes them alone.
//!
//! **Deferral.** A scattered write is a scalar one on these machines, so the refresh of all hits
//! would be the longest part of the work before the miss list is published. Nearly all of it can
//! wait until then, and other cores can help (`LateRefresh` in `avsg_late.h`). Let
//! v be what victims are chosen by: the lifetime, or of a learned lifetime its value (`order`). Let
//! b be the least t with count(v <= t) >= n_g + [`MAX_EARLY_HITS`]. If at most [`MAX_EARLY_HITS`] hits
//! have a v of at most b, then n_g slots up to b are not hits, and no victim has a v above b. A refresh
//! gives a slot the largest v of all slots, whatever a request has learned, so a hit above b is no victim
//! before or after its refresh, and no count up to b includes it. Hence the result is the same to
//! the last bit (`tests/kernels/conformance.rs`). If there are more such hits, as there are with S =
//! K, all hits are refreshed at once. The `paper` table cannot defer, because its additional decays
//! act on lifetimes that were refreshed before.

use super::order::{find_values, with_values};
use super::refresh::{refresh, refresh_listed};
use super::schedule::{Schedule, Token, Work, sequences};
use super::update_state::{collect_overwritten, copy_slots_out, write_links};
use crate::machine::Memory;
use crate::machine::control::{repeat, sweep, when, when_else};
use crate::machine::declare::Columns;
use crate::machine::phase::Phase;
use crate::machine::{Machine, search};
use crate::table::hash;
use crate::table::learned::NEW;
use crate::table::params::{ID_LIMIT, Lifetime, Params, Table};
use crate::table::state::{State, header};

/// The largest number of hits up to b that may be refreshed early while the others are deferred.
/// Real traces have a handful.
pub const MAX_EARLY_HITS: i32 = 64;

/// The schedule that examines all links of an id at once and defers refreshes.
#[derive(Clone, Copy, Debug)]
pub struct VectorCore;

impl VectorCore {
    /// Returns whether this schedule serves a table: `wide`, with probe sequences that fit a word.
    pub fn serves(p: &Params) -> bool {
        p.table == Table::Wide && hash::sequence_fits(p)
    }
}

/// The word that is sought in place of padding. No slot holds it.
const PADDING: i32 = -2;

/// The working columns that only [`VectorCore`] uses.
pub struct VectorCoreColumns<'a, M: Memory> {
    /// The probe sequences of the ids in this core's share of a token.
    pub share_sequence: M::Column<'a>,
    /// The ids of a token, with other words in place of those that are not valid.
    pub sought: M::Column<'a>,
    /// The hashes of these ids.
    pub hash: M::Column<'a>,
    /// The slots that the links of a pass name.
    pub candidate: M::Column<'a>,
    /// The probe sequences of the misses that search for a link a second time.
    pub second_sequence: M::Column<'a>,
}

impl Schedule for VectorCore {
    type Own<'a, M: Memory> = VectorCoreColumns<'a, M>;
    const SHARES: bool = true;
    const SCATTERS_POSITIONS: bool = false;

    #[inline(always)]
    fn declare<'a, M: Memory>(self, p: &Params, c: &mut impl Columns<'a, M>) -> Self::Own<'a, M> {
        VectorCoreColumns {
            share_sequence: c.column("share_sequence", p.k, sequences(p)),
            sought: c.column("sought", p.k, PADDING..=i32::MAX),
            hash: c.column("hash", p.k, i32::MIN..=i32::MAX),
            candidate: c.column("candidate", p.k, 0..=p.slots as i32 - 1),
            second_sequence: c.column("second_sequence", p.k, sequences(p)),
        }
    }

    /// Copies the ids of the only token in, so that they are hashed while the table is copied.
    #[inline(always)]
    fn begin<M: Machine>(self, s: &mut Token<'_, '_, M, Self>) {
        let m = s.m;
        if s.p.tokens == 1 {
            when!(m, m.gt(s.request.tokens, m.scalar(0)), || copy_ids(s));
        }
    }

    #[inline(always)]
    fn probe<M: Machine>(self, s: &mut Token<'_, '_, M, Self>) {
        let m = s.m;
        m.phase(Phase::Probe, "the probe sequences of the ids, or of this core's share of them");
        if s.p.tokens > 1 {
            copy_ids(s);
        }
        let Token { m: _, p, state, work, request, number } = s;
        // Only the first token may be shared.
        let shared = m.name_scalar("shared", m.gt(request.share.shared, *number));
        let alone = m.name_scalar("alone", m.not(shared));
        let n = alone * request.k + shared * request.share.len;
        let n = m.name_scalar("sought", m.min(n, request.k));
        mark_invalid(m, work, request.limit, request.k - shared * request.share.at);
        prepare_search(m, p, work, n);
        when_else!(
            m,
            shared,
            work,
            |work| {
                m.phase(Phase::Probe, "all links of an id at once");
                let queries = [&work.own.share_sequence, &work.own.sought];
                m.find(&hash::links(p), &mut work.slot, queries, n, [&state.link, &state.id]);
            },
            |work| {
                m.phase(Phase::Probe, "one link of each id per pass, from the last to the first");
                find_by_passes(m, p, state, work, n);
            }
        );
        when!(m, shared, || {
            m.phase(Phase::Probe, "exchange of the cores' shares");
            let row = &mut request.slot;
            m.copy_out(&mut row.words, row.at + request.share.at, &work.slot, n);
            m.synchronise();
            m.copy_in(&mut work.slot, &m.written(&row.words), row.at, request.k);
        });
        m.phase(Phase::ProbePending, "the ids that have no slot");
        m.clear(&mut work.pending);
        m.clear(&mut work.invalid);
        classify(m, work, request.k);
    }

    #[inline(always)]
    fn refresh<M: Machine>(self, s: &mut Token<'_, '_, M, Self>) {
        let m = s.m;
        m.phase(Phase::Refresh, "hits that could be chosen as victims");
        let at_once = m.name_scalar("atOnce", m.ne(s.number + 1, s.request.deferred));
        m.clear(&mut s.work.dead);
        find_values(s);
        when!(m, m.not(at_once), || collect_early_hits(s));
        m.phase(
            Phase::Refresh,
            "either all hits, or only those that could be chosen as victims, at most 64",
        );
        let many = m.gt(m.len(&s.work.dead), m.scalar(MAX_EARLY_HITS));
        let all = m.name_scalar("refreshAll", m.max(at_once, many));
        when_else!(
            m,
            all,
            s,
            |s| {
                refresh(s);
                find_values(s);
            },
            |s| {
                refresh_listed(s);
                keep_listed(m, s.work);
            }
        );
    }

    #[inline(always)]
    fn update<M: Machine>(self, s: &mut Token<'_, '_, M, Self>) {
        update(s);
    }
}

/// Copies the ids of the token in, or from this core's share of them on: the owner's share is the first one.
#[inline(always)]
fn copy_ids<M: Machine>(s: &mut Token<'_, '_, M, VectorCore>) {
    let Token { m, work, request, number, .. } = s;
    let skipped = m.gt(request.share.shared, *number) * request.share.at;
    let from = request.ids.at + request.ids.stride * *number + skipped;
    m.copy_in(&mut work.ids, &request.ids.words, from, request.k - skipped);
}

/// Collects the hits that could be chosen as victims in `work.dead`.
#[inline(always)]
fn collect_early_hits<M: Machine>(s: &mut Token<'_, '_, M, VectorCore>) {
    let Token { m, p, state, work, request, .. } = s;
    let need = m.name_scalar("need", m.len(&work.miss));
    // Without misses there are no victims.
    when!(m, m.gt(need, m.scalar(0)), || {
        let hint = m.name_scalar("hint", m.read_output(&state.header, m.scalar(header::THRESHOLD)));
        with_values(state, work.order.as_ref(), |values| {
            let bound = m.threshold(values, hint, need + MAX_EARLY_HITS);
            let above = m.name_scalar("bound", bound) + 1;
            sweep!(m, request.k, |t| {
                let slot = m.load(t, &work.slot);
                let none = m.is_negative(slot);
                // Another S than a power of two reduces no index, and -1 is none.
                let at =
                    if p.slots.is_power_of_two() { slot } else { m.select(none, m.splat(0), slot) };
                let early = m.is_negative(m.gather_life(values, at) - above);
                m.append(t, &mut work.dead, early & !none, [slot]);
            });
        });
    });
}

/// Gives the slots in `work.dead` the largest value, which the slots of a refresh have.
#[inline(always)]
fn keep_listed<M: Machine>(m: M, work: &mut Work<'_, M, VectorCore>) {
    if let Some(order) = &mut work.order {
        sweep!(m, m.len(&work.dead), |t| {
            let slot = m.item(t, &work.dead, 0);
            m.set_life(t, &mut order.value, slot, i8::MAX, !m.is_negative(slot));
        });
    }
}

/// Fills `sought` with the first `n` ids of `work.ids`, and with words that no slot holds in place of ids
/// that are not valid: [`PADDING`], and [`ID_LIMIT`] for an id at or above `limit`.
#[inline(always)]
fn mark_invalid<M: Machine>(
    m: M,
    work: &mut Work<'_, M, VectorCore>,
    limit: M::Scalar,
    n: M::Scalar,
) {
    sweep!(m, n, |t| {
        let id = m.load(t, &work.ids);
        m.store(t, &mut work.own.sought, m.select(m.is_negative(id), m.splat(PADDING), id));
    });
    sweep!(m, n, |t| {
        let x = m.load(t, &work.own.sought);
        let below = m.is_negative(m.name_vector("sign", x - limit));
        m.store(t, &mut work.own.sought, m.select(below, x, m.splat(ID_LIMIT)));
    });
}

/// Fills the columns of the first `n` ids that a search reads. Each sweep needs so few vectors that a
/// vector core takes a whole column at once.
#[inline(always)]
fn prepare_search<M: Machine>(m: M, p: &Params, work: &mut Work<'_, M, VectorCore>, n: M::Scalar) {
    // The hash of an id, and the hash of that hash.
    sweep!(m, n, |t| {
        let x = m.load(t, &work.own.sought);
        m.store(t, &mut work.own.hash, hash::mixed(m, p, x));
    });
    sweep!(m, n, |t| {
        let mixed = m.load(t, &work.own.hash);
        let x = m.load(t, &work.own.sought);
        m.store(t, &mut work.own.share_sequence, hash::sequence(m, p, x, mixed));
    });
}

/// Does what [`search::find`] does for `n` ids, and divides each pass into two sweeps with so few vectors
/// that a vector core takes a whole column at once.
#[inline(always)]
fn find_by_passes<M: Machine>(
    m: M,
    p: &Params,
    state: &State<'_, M>,
    work: &mut Work<'_, M, VectorCore>,
    n: M::Scalar,
) {
    let own = &mut work.own;
    search::passes(m, &hash::links(p), &mut work.slot, n, |slot, r| {
        sweep!(m, n, |t| {
            let at = hash::nth_in_sequence(m, p, m.load(t, &own.share_sequence), r);
            m.store(t, &mut own.candidate, search::named_slot(m, p.slots, &state.link, at));
        });
        sweep!(m, n, |t| {
            let (candidate, id) = (m.load(t, &own.candidate), m.load(t, &own.sought));
            let hit = search::holds(m, &state.id, candidate, id);
            let later = m.load(t, slot);
            m.store(t, slot, m.select(hit, candidate, later));
        });
    });
}

/// Classifies the first `n` ids of a token: one without a slot is appended to `work.pending` with its
/// lane, and one that is not valid to `work.invalid`.
#[inline(always)]
fn classify<M: Machine>(m: M, work: &mut Work<'_, M, VectorCore>, n: M::Scalar) {
    sweep!(m, n, |t| {
        let x = m.load(t, &work.own.sought);
        // The words in place of invalid ids are the only ones outside of 0..ID_LIMIT.
        let id = m.low_bits(x, ID_LIMIT.ilog2());
        let valid = m.name_mask("isValid", m.eq(x, id));
        let missing = m.eq_to(m.load(t, &work.slot), -1);
        m.append(t, &mut work.pending, missing & valid, [id, m.iota(t)]);
        m.append(t, &mut work.invalid, !valid, [x]);
    });
}

/// Does what [`Schedule::update`] says, in an order in which the units of a vector core work beside each other.
///
/// The scalar unit makes the scattered writes of a vector core, one by one, and the vector unit searches
/// for links. The two work at the same time where neither needs the other's results:
///
/// | scalar unit | vector unit |
/// |---|---|
/// | the ids of the misses enter the victims | probe sequences, and the links that they lead to |
/// | the slots of the misses reach their lanes | which of these links are reusable, and the new links |
/// | the new links are written | |
///
/// So each column of scattered words has a sweep of its own, and the sweeps stand in this order.
#[inline(always)]
fn update<M: Machine>(step: &mut Token<'_, '_, M, VectorCore>) {
    let Token { m, p, state, work, number, .. } = step;
    let (m, p) = (*m, *p);
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
    let first = m.name_scalar("first", *number * m.scalar(p.k as i32));
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
            let (found, second) = (&work.link_position, &mut work.own.second_sequence);
            collect_overwritten(m, p, state, &mut work.dead, found, [&mut work.new_link, second]);
            let (table, n) = ([&state.link, &state.id], m.len(&work.dead));
            let second = &work.own.second_sequence;
            m.find_free(&links, &mut work.link_position, second, n, table);
        });
    });
    copy_slots_out(step);
}

/// Sets the lifetimes of the new slots. A new slot whose refresh is deferred keeps the lifetime of the
/// victim until then under a constant rule, which needs no other value and gives it the lifetime of one
/// that was hit.
#[inline(always)]
fn refresh_new<M: Machine>(s: &mut Token<'_, '_, M, VectorCore>) {
    let m = s.m;
    match s.p.lifetime {
        Lifetime::Constant(_) => {
            when!(m, m.ne(s.number + 1, s.request.deferred), || refresh_listed(s));
        }
        Lifetime::Learned => sweep!(m, m.len(&s.work.dead), |t| {
            let slot = m.item(t, &s.work.dead, 0);
            m.set_life(t, &mut s.state.life, slot, NEW, !m.is_negative(slot));
        }),
    }
}
