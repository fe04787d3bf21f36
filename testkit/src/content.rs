//! What a test row holds: bytes that only its id and its version can have produced.
//!
//! The row of id x at version v is the output of splitmix64 seeded with x << 32 | v, little endian.
//! So a gathered row can be checked on its own, and a stale or foreign one cannot pass.

use crate::splitmix::{GAMMA, mix};

/// The seed of a row.
#[inline(always)]
const fn seed(id: i32, version: u32) -> u64 {
    (id as u32 as u64) << 32 | version as u64
}

/// The first 8 bytes of the row, as a little-endian word.
#[inline]
pub const fn tag(id: i32, version: u32) -> u64 {
    mix(seed(id, version).wrapping_add(GAMMA))
}

/// Writes the row of `id` at `version`. A length that is no multiple of 8 ends inside a word.
pub fn fill_row(id: i32, version: u32, row: &mut [u8]) {
    let mut state = seed(id, version);
    let (words, rest) = row.as_chunks_mut::<8>();
    for word in words {
        state = state.wrapping_add(GAMMA);
        *word = mix(state).to_le_bytes();
    }
    let last = mix(state.wrapping_add(GAMMA)).to_le_bytes();
    rest.copy_from_slice(&last[..rest.len()]);
}

/// Whether `row` holds exactly what [`fill_row`] writes. Differences are gathered without a branch:
/// the row is nearly always right, and then the whole of it must be read anyway.
pub fn check_row(id: i32, version: u32, row: &[u8]) -> bool {
    let mut state = seed(id, version);
    let mut wrong = 0;
    let (words, rest) = row.as_chunks::<8>();
    for word in words {
        state = state.wrapping_add(GAMMA);
        wrong |= mix(state) ^ u64::from_le_bytes(*word);
    }
    let last = mix(state.wrapping_add(GAMMA)).to_le_bytes();
    wrong == 0 && *rest == last[..rest.len()]
}
