//! Stage One: slots and misses of one request, token by token on one table.

use crate::collect_dead::collect_dead;
use crate::defer::{Refresh, refresh_early};
use crate::invalidate::invalidate;
use crate::lifecycle::{decay, reset};
use crate::locate::locate;
use crate::machine::Machine;
use crate::params::{Lifetime, MAX_TOKENS, Params};
use crate::probe::{count_far, probe, refresh, refresh_listed};
use crate::share::probe_part;
use crate::state::State;
use crate::update_state::{link, occupy};

/// Words of a request's record: one 64-byte line, so that two cores never write one line.
pub mod record {
    /// Words in a record.
    pub const WORDS: usize = 16;
    /// n_g, the misses of token g, is at g.
    pub const MISSES: i32 = 0;
    /// Misses of all tokens.
    pub const TOTAL: i32 = 8;
    /// Status bits, see [`super::status`].
    pub const STATUS: i32 = 9;
}

/// Status bits of a request. Ids that raise them were treated as padding.
pub mod status {
    /// Some id was at or above the request's sequence length.
    pub const ID_OUT_OF_RANGE: i32 = 1;
    /// Some id's row was outside the host pool.
    pub const ROW_OUT_OF_POOL: i32 = 2;
}

/// Working columns in fast memory. Columns and lists hold K words and the machine's slack.
pub struct Work<'a, M: Machine> {
    /// The token's ids.
    pub ids: M::Column<'a>,
    /// Their slots.
    pub slot: M::Column<'a>,
    /// Of a shared token's part the ways of its ids.
    pub part_way: M::Column<'a>,
    /// And the ids, [`crate::share::NOBODY`] where they are not valid.
    pub wanted: M::Column<'a>,
    /// (id, lane) of ids not found yet.
    pub pending: M::List<'a, 2>,
    /// The same, of the next round.
    pub next: M::List<'a, 2>,
    /// (id, token · K + lane, row) of the token's misses, in token order.
    pub miss: M::List<'a, 3>,
    /// Their slots.
    pub dead: M::List<'a, 1>,
    /// Of misses that are linked: see [`crate::hash::way`].
    pub way: M::Column<'a>,
    /// The word of each new link.
    pub new_link: M::Column<'a>,
    /// (way, place in `way`) of those for which no link was found yet.
    pub open: M::List<'a, 2>,
    /// The same, of the next round.
    pub open_next: M::List<'a, 2>,
    /// The link found for each of `way`: its position, or -1.
    pub at: M::Column<'a>,
    /// The token's ids that are padding or above the sequence length.
    pub void: M::List<'a, 1>,
    /// Counts the request's ids above its sequence length.
    pub far: M::List<'a, 0>,
    /// Counts the request's misses outside the pool.
    pub outside: M::List<'a, 0>,
}

/// One request of a batch, in global memory. `_at` fields are offsets in words.
pub struct Request<'a, M: Machine> {
    /// Tokens in this step, 0..=N_q.
    pub tokens: M::Scalar,
    /// Ids per token, at most K.
    pub k: M::Scalar,
    /// A generation other than the table's means a cold start.
    pub generation: M::Scalar,
    /// Tokens whose KV was final before this step, or [`crate::params::NO_STABLE_LEN`].
    pub stable: M::Scalar,
    /// Ids must be below it: the sequence length with this step's inputs.
    pub limit: M::Scalar,
    /// Rows (without block table) or blocks (with one) in the host pool.
    pub rows: M::Scalar,
    /// Selected ids, row by row.
    pub ids: M::Input<'a>,
    /// The first row.
    pub ids_at: M::Scalar,
    /// From row to row.
    pub ids_stride: M::Scalar,
    /// Block tables; unused when p.page is 0.
    pub blocks: M::Input<'a>,
    /// This request's.
    pub blocks_at: M::Scalar,
    /// Its entries.
    pub blocks_len: M::Scalar,
    /// Returned slots, row by row; -1 for padding.
    pub slot: M::Output<'a>,
    /// The first row.
    pub slot_at: M::Scalar,
    /// From row to row.
    pub slot_stride: M::Scalar,
    /// Valid ids of each row.
    pub valid: M::Output<'a>,
    /// The first row's.
    pub valid_at: M::Scalar,
    /// The compact miss list: position token · K + lane.
    pub miss_pos: M::Output<'a>,
    /// Its ids.
    pub miss_id: M::Output<'a>,
    /// Its slots.
    pub miss_slot: M::Output<'a>,
    /// Its host rows; -1 - n for fresh row n.
    pub miss_row: M::Output<'a>,
    /// Where this request's list starts.
    pub miss_at: M::Scalar,
    /// Records, [`record::WORDS`] each.
    pub record: M::Output<'a>,
    /// This request's.
    pub record_at: M::Scalar,
    /// Whether several cores probe the first token, each a part of it (see [`crate::share`]): 1 or 0.
    pub shared: M::Scalar,
    /// Its first lane.
    pub part_at: M::Scalar,
    /// Its lanes.
    pub part_len: M::Scalar,
    /// The token, counted from 1, whose hits wait for [`crate::defer::refresh_late`]: the last one. 0: none.
    pub late: M::Scalar,
}

/// Runs Stage One of one request: Algorithm 1 per token, on one table.
#[inline(always)]
pub fn stage_one<M: Machine>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &mut Work<'_, M>,
    request: &mut Request<'_, M>,
) {
    stage_one_with(m, p, state, work, request, Refresh::AtOnce);
}

/// [`stage_one`], with a choice of when hits are refreshed.
#[inline(always)]
pub fn stage_one_with<M: Machine>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &mut Work<'_, M>,
    request: &mut Request<'_, M>,
    when: Refresh,
) {
    reset(m, p, state, request.generation);
    invalidate(m, p, state, request.stable, request.limit);
    decay(m, p, state);
    m.clear(&mut work.far);
    m.clear(&mut work.outside);
    let total_at = request.record_at + record::TOTAL;
    m.put(&mut request.record, total_at, m.scalar(0));
    m.repeat(
        p.tokens.min(MAX_TOKENS),
        request.tokens,
        #[inline(always)]
        |g| {
            let (from, k) = (request.ids_at + request.ids_stride * g, request.k);
            if when.searches(p) {
                // The first token may be shared; then nothing is left to be probed here. The owner's part
                // is the first, so it has all ids.
                let shared = request.shared * m.if_gt(m.scalar(1), g, 1);
                let before = request.part_at * shared;
                m.fetch(&mut work.ids, &request.ids, from + before, k - before);
                probe_part(m, p, state, work, request, shared);
                let alone = k * (m.scalar(1) - shared);
                probe(m, p, state, work, alone, request.limit, when.pairs(p));
                let Work { pending, void, ids, slot, .. } = work;
                m.collect(pending, void, ids, slot, k * shared);
            } else {
                m.fetch(&mut work.ids, &request.ids, from, k);
                probe(m, p, state, work, k, request.limit, when.pairs(p));
            }
            count_far(m, work);
            let dropped = m.len(&work.outside);
            locate(m, p, work, request, g);
            let valid = request.k - m.len(&work.void) + dropped - m.len(&work.outside);
            m.put(&mut request.valid, request.valid_at + g, valid);
            // What is known is published at once: its column in fast memory is then free.
            let n = m.len(&work.miss);
            let total = m.peek(&request.record, total_at);
            let to = request.miss_at + total;
            m.publish_list(&mut request.miss_id, to, &work.miss, 0);
            m.publish_list(&mut request.miss_pos, to, &work.miss, 1);
            m.publish_list(&mut request.miss_row, to, &work.miss, 2);
            m.put(&mut request.record, request.record_at + g, n);
            m.put(&mut request.record, total_at, total + n);
            let now = m.if_ne(g + 1, request.late, 1);
            if when.defers(p) {
                refresh_early(m, p, state, work, request.k, now);
            } else {
                refresh(m, p, state, work, request.k);
            }
            collect_dead(m, p, state, work);
            m.publish_list(&mut request.miss_slot, to, &work.dead, 0);
            // What is refreshed late has no other lifetime until then, and needs none.
            let late = when.defers(p) && matches!(p.lifetime, Lifetime::Constant(_));
            occupy(m, p, state, work, g, !late);
            if late {
                // To a constant rule a new slot is one that was hit.
                refresh_listed(m, p, state, work, m.len(&work.dead) * now);
            }
            let to = request.slot_at + request.slot_stride * g;
            m.publish(&mut request.slot, to, &work.slot, request.k);
            link(m, p, state, work, when);
        },
    );
    let far = m.if_gt(m.len(&work.far), m.scalar(0), status::ID_OUT_OF_RANGE);
    let outside = m.if_gt(m.len(&work.outside), m.scalar(0), status::ROW_OUT_OF_POOL);
    m.put(&mut request.record, request.record_at + record::STATUS, far + outside);
}
