//! The 64-bit words in what is stored in a file or sent to another process.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Returns the checksum of the bytes around word `at`, which is where it is stored.
pub(crate) fn checksum(bytes: &[u8], at: usize) -> u64 {
    xxh3_64_with_seed(&bytes[8 * (at + 1)..], xxh3_64_with_seed(&bytes[..8 * at], 0))
}

/// Returns a word of 64 bits, little-endian; 0 behind the end.
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.as_chunks().0.get(at).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Writes words of 64 bits from word `at` on.
pub(crate) fn put(bytes: &mut [u8], at: usize, words: impl IntoIterator<Item = u64>) {
    let places = bytes.as_chunks_mut().0[at..].iter_mut();
    places.zip(words).for_each(|(place, word)| *place = word.to_le_bytes());
}
