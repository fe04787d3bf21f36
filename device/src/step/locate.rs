//! Locate: the host row of each miss, and which misses have none.
//!
//! A row is the id itself, or goes through the request's block table. An id at or above `stable_len`
//! was made in this very forward: its row is in the caller's fresh rows and is written as -1 - n, n
//! counted from `stable_len`. A miss whose row is outside the pool becomes padding before it can
//! take a slot: on an NPU that access would kill the context.

use super::request::{Request, record};
use super::schedule::{Schedule, Work};
use crate::machine::Machine;
use crate::machine::phase::Phase;
use crate::table::params::Params;

/// Turns `work.pending` (id, lane) into `work.miss` (id, token · K + lane, row), counts what fell out in
/// `work.out_of_range` and `work.out_of_pool`, and publishes the token's misses and its number of valid ids.
/// Returns where in the miss list the token's misses begin.
#[inline(always)]
pub fn locate<M: Machine, S: Schedule>(
    m: M,
    p: &Params,
    work: &mut Work<'_, M, S>,
    request: &mut Request<'_, M>,
    token: M::Scalar,
) -> M::Scalar {
    m.phase(Phase::Locate, "the host row of each miss.");
    count_out_of_range(m, work);
    let before = m.name_scalar("outOfPoolBefore", m.len(&work.out_of_pool));
    find_rows(m, p, work, request, token);
    m.phase(
        Phase::Locate,
        "the token's misses, published at once, so that their columns are free.",
    );
    let dropped = m.len(&work.out_of_pool);
    let valid = request.k - m.len(&work.invalid) + before - dropped;
    m.write_output(&mut request.valid.words, request.valid.at + token, valid);
    let n = m.len(&work.miss);
    let total_at = request.record.at + record::TOTAL;
    let total = m.name_scalar("total", m.read_output(&request.record.words, total_at));
    let at = m.name_scalar("missesAt", request.misses.at + total);
    m.publish_list(&mut request.misses.id, at, &work.miss, 0);
    m.publish_list(&mut request.misses.position, at, &work.miss, 1);
    m.publish_list(&mut request.misses.row, at, &work.miss, 2);
    m.write_output(&mut request.record.words, request.record.at + (token + record::MISSES), n);
    m.write_output(&mut request.record.words, total_at, total + n);
    at
}

/// Counts those of the ids that are not valid that are at or above the sequence length.
#[inline(always)]
fn count_out_of_range<M: Machine, S: Schedule>(m: M, work: &mut Work<'_, M, S>) {
    m.sweep(
        m.len(&work.invalid),
        #[inline(always)]
        |t| {
            let padding = m.is_negative(m.item(t, &work.invalid, 0));
            m.append(t, &mut work.out_of_range, !padding, []);
        },
    );
}

/// Fills `work.miss` with what of `work.pending` has a row.
#[inline(always)]
fn find_rows<M: Machine, S: Schedule>(
    m: M,
    p: &Params,
    work: &mut Work<'_, M, S>,
    request: &Request<'_, M>,
    token: M::Scalar,
) {
    m.clear(&mut work.miss);
    let first = m.name_scalar("first", token * m.scalar(p.k as i32));
    m.sweep(
        m.len(&work.pending),
        #[inline(always)]
        |t| {
            let (x, lane) = (m.item(t, &work.pending, 0), m.item(t, &work.pending, 1));
            let n = m.name_vector("fresh", x - request.stable);
            let fresh = m.name_mask("isFresh", !m.is_negative(n));
            let (row, inside) = if p.page == 0 {
                (x, m.is_negative(m.name_vector("beyond", x - request.rows)))
            } else {
                let bits = p.page.ilog2();
                let block = m.lookup(
                    t,
                    &request.blocks.words,
                    request.blocks.at,
                    request.blocks.len,
                    if bits == 0 { x } else { m.shr(x, bits) },
                    !fresh,
                );
                let block = m.name_vector("block", block);
                // Cleared first: a row's number must not overflow.
                let negative = m.is_negative(block);
                let block = m.select(negative, m.splat(0), block);
                let beyond = m.name_vector("beyond", block - request.rows);
                let inside = m.is_negative(beyond) & !negative;
                let block = m.select(inside, block, m.splat(0)) * (p.page as i32);
                (if bits == 0 { block } else { block | m.low_bits(x, bits) }, inside)
            };
            let fresh_row = m.name_vector("freshRow", n * -1 + -1);
            let row = m.select(fresh, fresh_row, row);
            let found = fresh | inside;
            m.append(t, &mut work.miss, found, [x, lane + first, row]);
            m.append(t, &mut work.out_of_pool, !found, []);
        },
    );
}
