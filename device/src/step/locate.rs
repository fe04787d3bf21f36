//! Locate: the host row of each miss, and the misses that have none.
//!
//! The row of an id is the id itself, or is found through the block table of the request. An id at
//! or above `stable_len` was made in this forward pass: its row is among the fresh rows of the
//! caller and is written as -1 - n, where n counts from `stable_len`. A miss whose row is outside
//! of the pool becomes padding before it can take a slot, because an NPU that accessed it would
//! lose its context.

use super::request::{Span, summary};
use super::schedule::{Schedule, Token, Work};
use crate::machine::Machine;
use crate::machine::control::sweep;
use crate::machine::phase::Phase;
use crate::table::params::Params;

/// Makes `work.miss` (id, token · K + lane, row) from `work.pending` (id, lane), counts ids without
/// a row in `work.out_of_range` and `work.out_of_pool`, and publishes the misses of the token and
/// its number of valid ids. Returns the index in the miss list at which the misses of the token
/// begin.
#[inline(always)]
pub fn locate<M: Machine, S: Schedule>(s: &mut Token<'_, '_, M, S>) -> M::Scalar {
    let m = s.m;
    m.phase(Phase::Locate, "the host row of each miss");
    count_out_of_range(m, s.work);
    let before = m.name_scalar("outOfPoolBefore", m.len(&s.work.out_of_pool));
    find_rows(s);
    m.phase(Phase::Locate, "publication of the token's misses, after which their columns are free");
    let Token { p, work, request, number, .. } = s;
    let dropped = m.len(&work.out_of_pool);
    let valid = request.k - m.len(&work.invalid) + before - dropped;
    m.write_output(&mut request.valid.words, request.valid.at + *number, valid);
    let n = m.len(&work.miss);
    let total_at = request.summary.at + summary::TOTAL;
    let total = m.name_scalar("total", m.read_output(&request.summary.words, total_at));
    let at = m.name_scalar("missesAt", request.misses.at + total);
    m.copy_out_list(&mut request.misses.id, at, &work.miss, 0);
    m.copy_out_list(&mut request.misses.position, at, &work.miss, 1);
    m.copy_out_list(&mut request.misses.row, at, &work.miss, 2);
    write_misses(m, p, &mut request.summary, *number, n);
    m.write_output(&mut request.summary.words, total_at, total + n);
    at
}

/// Writes the number of misses of a token to the summary, where [`summary::row_misses`] finds it.
#[inline(always)]
fn write_misses<M: Machine>(
    m: M,
    p: &Params,
    line: &mut Span<M::Output<'_>, M::Scalar>,
    token: M::Scalar,
    n: M::Scalar,
) {
    if p.tokens <= summary::TOKENS {
        m.write_output(&mut line.words, line.at + (token + summary::MISSES), n);
        return;
    }
    let upper = m.name_scalar("upper", m.gt(token, m.scalar(summary::TOKENS as i32 - 1)));
    let word = m.name_scalar("word", token - upper * m.scalar(summary::TOKENS as i32));
    let at = line.at + (word + summary::MISSES);
    // The word of a lower half may have anything before, which counts as 0.
    let lower = m.name_scalar("lower", m.read_output(&line.words, at) * upper);
    let unit = upper * m.scalar(summary::UPPER - 1) + 1;
    m.write_output(&mut line.words, at, lower + n * unit);
}

/// Counts the invalid ids that are at or above the sequence length; the others are padding.
#[inline(always)]
fn count_out_of_range<M: Machine, S: Schedule>(m: M, work: &mut Work<'_, M, S>) {
    sweep!(m, m.len(&work.invalid), |t| {
        let padding = m.is_negative(m.item(t, &work.invalid, 0));
        m.append(t, &mut work.out_of_range, !padding, []);
    });
}

/// Fills `work.miss` with the entries of `work.pending` that have a row.
#[inline(always)]
fn find_rows<M: Machine, S: Schedule>(s: &mut Token<'_, '_, M, S>) {
    let Token { m, p, work, request, number, .. } = s;
    m.clear(&mut work.miss);
    let first = m.name_scalar("first", *number * m.scalar(p.k as i32));
    sweep!(m, m.len(&work.pending), |t| {
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
            // An entry that is not a block is set to 0 before it is multiplied, because the
            // product must not overflow.
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
    });
}
