//! The contents of test rows, which identify the row's id and its version.
//!
//! The row of id x at version v is the output of splitmix64 with seed x << 32 | v, in little-endian
//! words. A gathered row can therefore be checked by itself, and the check fails for a row of
//! another id or version.

use crate::splitmix::SplitMix64;

/// Returns the generator of a row.
#[inline(always)]
const fn words(id: i32, version: u32) -> SplitMix64 {
    SplitMix64::new((id as u32 as u64) << 32 | version as u64)
}

/// Returns the first 8 bytes of the row as a little-endian word.
#[inline]
pub fn tag(id: i32, version: u32) -> u64 {
    words(id, version).word()
}

/// Writes the row of `id` at `version`. If the length is not a multiple of 8, the last word is cut
/// off.
pub fn fill_row(id: i32, version: u32, row: &mut [u8]) {
    let mut words = words(id, version);
    let (whole, rest) = row.as_chunks_mut::<8>();
    for word in whole {
        *word = words.word().to_le_bytes();
    }
    rest.copy_from_slice(&words.word().to_le_bytes()[..rest.len()]);
}

/// Returns whether `row` is exactly what [`fill_row`] writes. It reads the whole row without a
/// branch, because nearly all rows are correct and must be read to the end anyway.
pub fn check_row(id: i32, version: u32, row: &[u8]) -> bool {
    let (mut words, mut wrong) = (words(id, version), 0);
    let (whole, rest) = row.as_chunks::<8>();
    for word in whole {
        wrong |= words.word() ^ u64::from_le_bytes(*word);
    }
    wrong == 0 && *rest == words.word().to_le_bytes()[..rest.len()]
}
