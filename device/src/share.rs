//! Sharing: where requests are few, several cores probe for each.
//!
//! Probe only reads the table, and its lanes do not know of each other. So of a request's first token each
//! of its cores probes a part, and writes the slots that it found where all of the token's slots will be.
//! The core that owns the request waits for the others, takes the row, and goes on with what was not found;
//! the others are done. Later tokens see what the first one changed, and are the owner's alone.

use crate::hash;
use crate::machine::Machine;
use crate::params::{ID_LIMIT, Params};
use crate::probe::selected;
use crate::stage_one::{Request, Work};
use crate::state::{EMPTY, State};

/// Ids below which a core's part is not made smaller: a vector's lanes.
pub const PART: usize = 64;
/// Cores below which a request is not shared: looking at all links at once would take longer than Probe.
pub const SHARERS: usize = 4;

/// Pieces of a table's plane on its way in, of which sharers begin with different ones.
pub const PIECES: usize = 4;

/// How many cores probe for each request of a batch: one, or as many as there are for each. As
/// `avsg_plan.h` deals them.
pub fn sharers(requests: usize, k: usize, cores: usize) -> usize {
    let each = (cores / requests.max(1)).min(k.div_ceil(PART));
    if each < SHARERS { 1 } else { each }
}

/// Ids of each sharer's part but the last: whole blocks.
pub fn part(k: usize, sharers: usize) -> usize {
    k.div_ceil(sharers * 8) * 8
}

/// What no slot holds: stands for an id that is not valid.
pub const NOBODY: i32 = -2;

/// Probes this core's part of a token, the first of `work.ids`, if `shared` is 1, and waits for the other cores:
/// `work.slot` then holds the slots of the whole token, -1 for a miss and [`NOBODY`] for what is not valid.
/// Nothing happens if `shared` is 0.
#[inline(always)]
pub fn probe_part<M: Machine>(
    m: M,
    p: &Params,
    state: &State<'_, M>,
    work: &mut Work<'_, M>,
    request: &mut Request<'_, M>,
    shared: M::Scalar,
) {
    let n = request.part_len * shared;
    m.sweep(
        n,
        #[inline(always)]
        |t| {
            let (_, x, valid) = selected(m, t, work, request.limit);
            m.store(t, &mut work.part_way, hash::way(m, p, x, hash::mixed(m, p, x)));
            m.store(t, &mut work.wanted, m.select(valid, x, m.splat(NOBODY)));
        },
    );
    m.find(p, &mut work.slot, [&work.part_way, &work.wanted], n, state);
    m.sweep(
        n,
        #[inline(always)]
        |t| {
            let void = m.eq_to(m.load(t, &work.wanted), NOBODY);
            let slot = m.load(t, &work.slot);
            m.store(t, &mut work.slot, m.select(void, m.splat(NOBODY), slot));
        },
    );
    let (at, all) = (request.slot_at, request.k * shared);
    m.share(&mut work.slot, &mut request.slot, at, request.part_at, n, all);
}

/// Sorts out what a shared token left: of its first `n` ids those that missed to `pending`, as id and lane, those
/// that are not valid to `void`. `slot` then has -1 for both.
#[inline(always)]
pub fn collect<M: Machine>(
    m: M,
    pending: &mut M::List<'_, 2>,
    void: &mut M::List<'_, 1>,
    ids: &M::Column<'_>,
    slot: &mut M::Column<'_>,
    n: M::Scalar,
) {
    m.sweep(
        n,
        #[inline(always)]
        |t| {
            let (id, found) = (m.load(t, ids), m.load(t, slot));
            let nobody = m.eq_to(found, NOBODY);
            // A valid id has no more bits.
            let x = m.low(id, ID_LIMIT.ilog2());
            m.append(t, pending, m.eq_to(found, EMPTY), [x, m.iota(t)]);
            m.append(t, void, nobody, [id]);
            m.store(t, slot, m.select(nobody, m.splat(EMPTY), found));
        },
    );
}
