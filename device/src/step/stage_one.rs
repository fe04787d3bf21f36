//! Stage One: the slots and the misses of one request, token by token on one table.

use super::collect_dead::collect_dead;
use super::locate::locate;
use super::order::decay;
use super::prepare::{invalidate, reset};
use super::request::{Request, status, summary};
use super::schedule::{Schedule, Token, Work};
use crate::machine::Machine;
use crate::machine::control::repeat;
use crate::table::params::{MAX_TOKENS, Params};
use crate::table::state::State;

/// Runs Stage One of one request by a schedule: prepares the table, and runs Alg. 1 for each token.
#[inline(always)]
pub fn stage_one<'a, M: Machine, S: Schedule>(
    m: M,
    schedule: S,
    p: &Params,
    state: &mut State<'a, M>,
    work: &mut Work<'a, M, S>,
    request: &mut Request<'a, M>,
) {
    schedule.begin(&mut Token { m, p, state, work, request, number: m.scalar(0) });
    prepare(m, p, state, work, request);
    repeat!(m, p.tokens.min(MAX_TOKENS), request.tokens, |number| {
        let s = &mut Token { m, p, state, work, request, number };
        schedule.probe(s);
        let misses_at = locate(s);
        schedule.refresh(s);
        collect_dead(s);
        m.copy_out_list(&mut s.request.misses.slot, misses_at, &s.work.dead, 0);
        schedule.update(s);
    });
    write_status(m, work, request);
}

/// Prepares the table for the step, and clears the counters of the request.
#[inline(always)]
fn prepare<M: Machine, S: Schedule>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &mut Work<'_, M, S>,
    request: &mut Request<'_, M>,
) {
    reset(m, p, state, request.generation);
    invalidate(m, p, state, request.stable, request.limit);
    decay(m, p, state, work, &request.share);
    m.clear(&mut work.out_of_range);
    m.clear(&mut work.out_of_pool);
    m.write_output(&mut request.summary.words, request.summary.at + summary::TOTAL, m.scalar(0));
}

/// Writes the status of the request.
#[inline(always)]
fn write_status<M: Machine, S: Schedule>(
    m: M,
    work: &Work<'_, M, S>,
    request: &mut Request<'_, M>,
) {
    let some = |n| m.gt(n, m.scalar(0));
    let out_of_range = some(m.len(&work.out_of_range)) * m.scalar(status::ID_OUT_OF_RANGE);
    let out_of_pool = some(m.len(&work.out_of_pool)) * m.scalar(status::ROW_OUT_OF_POOL);
    let at = request.summary.at + summary::STATUS;
    m.write_output(&mut request.summary.words, at, out_of_range + out_of_pool);
}
