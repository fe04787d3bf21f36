//! When a launch is shared among the workers: if one core would need longer than waking them takes.
//!
//! The numbers are rough, and a wrong one costs only time: whoever runs a piece, the result is the same.
//! docs/benchmarks.md names the machines on which the measured ones were taken.

use crate::call::Batch;

/// Bytes that one core copies in a nanosecond. `avsg bench transfer` copies 8.4 to 11.6 GB/s on two
/// cores (docs/benchmarks.md, "Copying").
const COPIED_BYTES_PER_NANOSECOND: usize = 6;

/// Nanoseconds that one core takes to match an id. `avsg bench match` takes 3.2 to 13.5 us for a row
/// of K = 2048 ids (docs/benchmarks.md, "Matching").
const MATCH_NANOSECONDS_PER_ID: usize = 4;

/// Ids of which one is taken to miss, before Stage One has counted the misses. It is a choice, not a
/// measurement: in docs/benchmarks.md ("Hit rates") 0.2 to 25 % of the ids miss if S is 2 to 4 times K.
const IDS_PER_MISS: usize = 10;

/// The least nanoseconds of work that are shared if every worker is awake, and if one sleeps. They are
/// choices above the 1 us and the 30 to 60 us that a launch then costs the caller, which no command of
/// this repository measures.
const MIN_SHARED_NANOSECONDS: [u64; 2] = [4_000, 60_000];

/// Returns whether a launch whose pieces take one core so long is shared.
pub(super) fn is_shared(nanoseconds: u64, asleep: bool) -> bool {
    nanoseconds >= MIN_SHARED_NANOSECONDS[usize::from(asleep)]
}

/// Returns the nanoseconds in which one core copies rows.
pub(super) fn copy_nanoseconds(rows: usize, row_bytes: usize) -> u64 {
    (rows.saturating_mul(row_bytes) / COPIED_BYTES_PER_NANOSECOND) as u64
}

/// Returns the nanoseconds in which one core runs Stage One; 0 for one request, which is one piece.
pub(super) fn match_nanoseconds(batch: &Batch<'_>) -> u64 {
    if batch.requests() > 1 { (ids(batch) * MATCH_NANOSECONDS_PER_ID) as u64 } else { 0 }
}

/// Returns the misses that a batch is taken to have.
pub(super) fn expected_misses(batch: &Batch<'_>) -> usize {
    ids(batch) / IDS_PER_MISS
}

fn ids(batch: &Batch<'_>) -> usize {
    batch.tokens() * batch.k
}

#[cfg(test)]
mod tests;
