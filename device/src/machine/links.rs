//! The shape of the links of a table, as a search over them uses it: constants when a kernel is
//! recorded.

/// Returns the number of bits of the numbers below n, which is not 0.
#[inline(always)]
pub const fn bits_below(n: u32) -> u32 {
    u32::BITS - (n - 1).leading_zeros()
}

/// The shape of a table's links, and how the fingerprint of an id is made.
///
/// The links of an id are along its probe sequence: link r is at (first + r · stride) mod
/// 2^`position_bits`. One word holds a probe sequence: the stride above the `position_bits` bits of
/// the first position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    /// R, the number of links examined after the first.
    pub retries: u32,
    /// t, the number of bits of a link's position.
    pub position_bits: u32,
    /// S, the number of slots. A slot is in the low bits of a link's word ([`bits_below`]).
    pub slots: u32,
    /// Multipliers that make the mixed word of an id, as `Machine::madd` takes them. A fingerprint
    /// is a part of that word.
    pub multipliers: (i32, i32),
    /// The lowest bit of a fingerprint in the mixed word.
    pub fingerprint_shift: u32,
    /// The number of bits of a fingerprint.
    pub fingerprint_bits: u32,
}
