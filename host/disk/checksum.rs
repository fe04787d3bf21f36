//! The checksum behind each row of a file.

use xxhash_rust::xxh3;

/// Bytes of a checksum.
pub(super) const BYTES: usize = 8;

/// Returns the checksum of the row with this number in the file that has this random number. A row at
/// another place, or one that an older file left on the same blocks, has another checksum. It is never 0, so that
/// a hole of the file, in which row and checksum are zeros, is no whole row.
pub(super) fn of_row(file: u64, number: usize, row: &[u8]) -> [u8; BYTES] {
    let place = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (xxh3::xxh3_64(row) ^ file.wrapping_add(place)).max(1).to_le_bytes()
}

/// Returns the checksum of a block of the file's own data.
pub(super) fn of_block(file: u64, bytes: &[u8]) -> u64 {
    xxh3::xxh3_64_with_seed(bytes, file)
}
