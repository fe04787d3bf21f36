//! Reading arrays that must not be in memory that the call writes: the outputs of its plan, and the
//! device buffer, the tables and the working memory of its engine. Each array takes one binary search in
//! a list of these ranges that was made with the plan (`Plan::written_in`).

use std::ops::Range;

use crate::arrays::{RawSegment, avsg_batch, avsg_i32s};
use crate::contract::contract;
use crate::sized;
use crate::status::{Failure, Result};
use avsg::plan::Plan;

/// Copies the struct of a batch that the call plans into `plan`.
///
/// # Safety
/// `batch` is NULL or valid for reads of the number of bytes in its `size`.
pub(crate) unsafe fn read_batch(batch: *const avsg_batch, plan: &Plan) -> Result<avsg_batch> {
    let batch = contract!(sized::read(batch)?);
    let inputs = [
        ("ids", batch.ids),
        ("cu_q", batch.cu_q),
        ("state", batch.state),
        ("generation", batch.generation),
        ("stable_len", batch.stable_len),
        ("seq_len", batch.seq_len),
        ("block_table", batch.block_table),
    ];
    check(&inputs, plan)?;
    Ok(batch)
}

/// Refuses arrays of which a byte is in memory that a call with the plan writes. Addresses of the host
/// and of the device are compared alike, because they are never equal.
pub(crate) fn check(inputs: &[(&str, avsg_i32s)], plan: &Plan) -> Result<()> {
    inputs.iter().try_for_each(|&(input, array)| {
        check_range(input, array.data.addr(), (array.len, "elements", 4), plan)
    })
}

/// Refuses fresh rows as [`check`] refuses arrays, before a call transfers the plan.
pub(crate) fn check_fresh(fresh: &[RawSegment], plan: &Plan) -> Result<()> {
    fresh.iter().try_for_each(|&(data, bytes)| {
        check_range("fresh data", data.addr(), (bytes, "bytes", 1), plan)
    })
}

/// Refuses `len` units of some bytes each.
fn check_range(
    input: &str,
    at: usize,
    (len, unit, bytes): (usize, &str, usize),
    plan: &Plan,
) -> Result<()> {
    let Some(range) = range(at, len.saturating_mul(bytes)) else { return Ok(()) };
    let Some(output) = plan.written_in(range) else { return Ok(()) };
    Failure::refuse(format!(
        "{input} has {len} {unit} at {at:#x}, but the call writes the {output} there; pass an array of \
         its own, and its length in {unit}"
    ))
}

/// Refuses arrays of int32, as (name, address, elements), of which two have a byte in common.
pub(crate) fn check_apart(arrays: [(&str, usize, usize); 3]) -> Result<()> {
    for (n, &(name, at, len)) in arrays.iter().enumerate() {
        let Some(own) = range(at, len.saturating_mul(4)) else { continue };
        let meets = |&&(_, at, len): &&(_, usize, usize)| {
            range(at, len.saturating_mul(4))
                .is_some_and(|other| own.start < other.end && other.start < own.end)
        };
        if let Some((other, ..)) = arrays[..n].iter().find(meets) {
            return Failure::refuse(format!(
                "{name} has {len} elements at {at:#x}, but {other} has the same memory; pass arrays of \
                 their own"
            ));
        }
    }
    Ok(())
}

/// Returns the addresses of an array; None for NULL, an empty array and one that is longer than memory,
/// which are refused elsewhere or not used.
fn range(at: usize, bytes: usize) -> Option<Range<usize>> {
    let end = at.checked_add(bytes).filter(|_| at != 0 && bytes > 0)?;
    Some(at..end)
}
