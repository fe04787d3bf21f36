//! Checks of the words that a device wrote, before the host uses them as lengths and indices.
//!
//! A correct kernel passes them all. A kernel that was built for another geometry or by another
//! compiler, or that another kernel disturbed, may write anything.

use core::ops::Range;

use avsg_device::params::{ID_LIMIT, Params};
use avsg_device::request::{status, summary};
use avsg_device::tiling::MAX_SLOT_BLOCKS;

use crate::plan::Plan;
use crate::resources::Resources;
use crate::{Error, Result, invalid};

fn wrong(what: &'static str, value: i32, limit: String) -> Error {
    let remedy = "the next plan empties every table; if this repeats, run `avsg doctor`";
    Error::Device { what, value: value.to_string(), limit, remedy }
}

/// Returns an error for the first word that is not good.
fn each(
    what: &'static str,
    words: &[i32],
    limit: impl FnOnce() -> String,
    good: impl Fn(i32) -> bool,
) -> Result<()> {
    // The fold has no branch, so it is vectorised; the search runs only after a fault.
    if words.iter().fold(true, |all, &word| all & good(word)) {
        return Ok(());
    }
    let first = words.iter().find(|&&word| !good(word));
    first.map_or(Ok(()), |&word| Err(wrong(what, word, limit())))
}

/// Returns an error for the first word outside of `range`.
fn within(what: &'static str, words: &[i32], range: Range<i32>) -> Result<()> {
    let limit = || format!("it must be {}..={}", range.start, range.end - 1);
    each(what, words, limit, |word| range.contains(&word))
}

/// Checks all words of a plan that a device wrote.
pub(super) fn check(plan: &Plan, resources: &Resources) -> Result<()> {
    let (config, k) = (&resources.config, plan.k as i32);
    within("a token's number of valid ids", plan.valid(), 0..k + 1)?;
    let slots = match config.slot_base {
        None => 0..config.params.slots as i32,
        // The sum fits, because `Resources::check` has compared it.
        Some(base) => base..base + config.slot_indices() as i32,
    };
    let limit = || format!("it must be -1 or {}..={}", slots.start, slots.end - 1);
    each("a slot", &plan.slot[..plan.tokens() * plan.k], limit, |word| {
        (word == -1) | slots.contains(&word)
    })?;
    // The entries of a state in the table of the caller's buffer.
    let blocks = config.slot_table().map(|table| table.count(config.params.slots as usize) as u32);
    let pool_rows = i32::try_from(resources.pool.rows()).unwrap_or(i32::MAX);
    for request in 0..plan.requests() {
        check_status(plan.status(request), blocks)?;
        check_request(plan, request, &config.params, pool_rows)?;
    }
    Ok(())
}

/// Checks the status bits of a request. `blocks` is the number of a state's blocks, if a table names
/// them.
fn check_status(bits: i32, blocks: Option<u32>) -> Result<()> {
    let known = status::ID_OUT_OF_RANGE | status::ROW_OUT_OF_POOL;
    match blocks {
        Some(blocks) if bits & !known == status::TOO_MANY_SLOT_BLOCKS => {
            Err(invalid!("blocks of a state" is blocks, but
                "the kernels take fewer, and those of this version {MAX_SLOT_BLOCKS}";
                "load kernels of this version, or pass larger blocks of slots"))
        }
        _ => within("the status of a request", &[bits], 0..known + 1),
    }
}

fn check_request(plan: &Plan, request: usize, params: &Params, pool_rows: i32) -> Result<()> {
    let tokens = plan.cu_q[request + 1] - plan.cu_q[request];
    let words = &plan.summary[request * summary::WORDS..][..summary::WORDS];
    let (k, total) = (plan.k as i32, words[summary::TOTAL as usize]);
    for misses in summary::row_misses(words, tokens as usize) {
        within("a token's number of misses", &[misses], 0..k + 1)?;
    }
    // The numbers of misses are at most K, so their sum cannot overflow.
    let sum = summary::row_misses(words, tokens as usize).sum();
    if total != sum {
        let limit = format!("the tokens of request {request} have {sum} misses");
        return Err(wrong("a request's number of misses", total, limit));
    }
    let list = plan.misses(request);
    within("a miss's position", list.position, 0..tokens * k)?;
    within("a miss's id", list.id, 0..ID_LIMIT)?;
    within("a miss's slot", list.slot, 0..params.slots as i32)?;
    within("a miss's row", list.row, -tokens..pool_rows)
}
