//! Checks of the words that a device wrote, before the host uses them as lengths and indices.
//!
//! A correct kernel passes them all. A kernel that was built for another geometry or by another
//! compiler, or that another kernel disturbed, may write anything.

use core::ops::Range;

use avsg_device::params::{ID_LIMIT, Params};
use avsg_device::request::{record, status};

use crate::plan::Plan;
use crate::{Error, Result};

fn wrong(what: &'static str, value: i32, limit: String) -> Error {
    let remedy = "the next plan empties every table; if this repeats, run `avsg doctor`";
    Error::Device { what, value: value.to_string(), limit, remedy }
}

/// Returns an error for the first word outside of `range`.
fn within(what: &'static str, words: &[i32], range: Range<i32>) -> Result<()> {
    // The fold has no branch, so it is vectorised; the search runs only after a fault.
    if words.iter().fold(true, |all, word| all & range.contains(word)) {
        return Ok(());
    }
    let first = words.iter().find(|word| !range.contains(word));
    first.map_or(Ok(()), |&word| {
        Err(wrong(what, word, format!("it must be {}..={}", range.start, range.end - 1)))
    })
}

/// Checks all words of a plan that a device wrote. `pool_rows` is the number of rows of a layer of
/// the host pool.
pub(super) fn check(plan: &Plan, params: &Params, pool_rows: usize) -> Result<()> {
    let (k, slots) = (plan.k as i32, params.slots as i32);
    within("a row's number of valid ids", plan.valid(), 0..k + 1)?;
    for row in 0..plan.rows() {
        within("a slot", plan.slots(row), -1..slots)?;
    }
    for request in 0..plan.requests() {
        check_request(plan, request, params, i32::try_from(pool_rows).unwrap_or(i32::MAX))?;
    }
    Ok(())
}

fn check_request(plan: &Plan, request: usize, params: &Params, pool_rows: i32) -> Result<()> {
    let tokens = plan.cu_q[request + 1] - plan.cu_q[request];
    let words = &plan.record[request * record::WORDS..][..record::WORDS];
    let (k, total) = (plan.k as i32, words[record::TOTAL as usize]);
    let misses = &words[record::MISSES as usize..][..tokens as usize];
    within("a token's number of misses", misses, 0..k + 1)?;
    // The numbers of misses are at most K, so their sum cannot overflow.
    let sum = misses.iter().sum();
    if total != sum {
        let limit = format!("the tokens of request {request} have {sum} misses");
        return Err(wrong("a request's number of misses", total, limit));
    }
    let known = status::ID_OUT_OF_RANGE | status::ROW_OUT_OF_POOL;
    within("the status of a request", &words[record::STATUS as usize..][..1], 0..known + 1)?;
    let list = plan.misses(request);
    within("a miss's position", list.position, 0..tokens * k)?;
    within("a miss's id", list.id, 0..ID_LIMIT)?;
    within("a miss's slot", list.slot, 0..params.slots as i32)?;
    within("a miss's row", list.row, -tokens..pool_rows)
}
