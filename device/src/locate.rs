//! Locate: the host row of each miss, and which misses have none.
//!
//! A row is the id itself, or goes through the request's block table. An id at or above `stable_len`
//! was made in this very forward: its row is in the caller's fresh rows and is written as -1 - n, n
//! counted from `stable_len`. A miss whose row is outside the pool becomes padding before it can
//! take a slot: on an NPU that access would kill the context.

use crate::machine::Machine;
use crate::params::Params;
use crate::stage_one::{Request, Work};

/// Turns `work.pending` (id, lane) into `work.miss` (id, token · K + lane, row) and counts what fell out
/// in `work.outside`.
#[inline(always)]
pub fn locate<M: Machine>(
    m: M,
    p: &Params,
    work: &mut Work<'_, M>,
    request: &Request<'_, M>,
    token: M::Scalar,
) {
    m.clear(&mut work.miss);
    let first = token * m.scalar(p.k as i32);
    m.sweep(
        m.len(&work.pending),
        #[inline(always)]
        |t| {
            let (x, lane) = (m.item(t, &work.pending, 0), m.item(t, &work.pending, 1));
            let n = x - request.stable;
            let fresh = !m.neg(n);
            let (row, inside) = if p.page == 0 {
                (x, m.neg(x - request.rows))
            } else {
                let bits = p.page.ilog2();
                let block = m.lookup(
                    t,
                    &request.blocks,
                    request.blocks_at,
                    request.blocks_len,
                    if bits == 0 { x } else { m.shr(x, bits) },
                    !fresh,
                );
                // Cleared first: a row's number must not overflow.
                let negative = m.neg(block);
                let block = m.select(negative, m.splat(0), block);
                let inside = m.neg(block - request.rows) & !negative;
                let block = m.select(inside, block, m.splat(0)) * (p.page as i32);
                (if bits == 0 { block } else { block | m.low(x, bits) }, inside)
            };
            let row = m.select(fresh, n * -1 + -1, row);
            let found = fresh | inside;
            m.append(t, &mut work.miss, found, [x, lane + first, row]);
            m.append(t, &mut work.outside, !found, []);
        },
    );
}
