//! What a search over all links of an id has to know of a table: constants when a kernel is recorded.

/// The shape of a table's links, and how an id's print is made.
///
/// The links of an id lie along its probe sequence: link r is at (first + r · stride) mod 2^`position_bits`. One
/// word holds a probe sequence, the stride above the `position_bits` of the first position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    /// R: links examined after the first.
    pub retries: u32,
    /// t: bits of a link's position.
    pub position_bits: u32,
    /// m: bits of a slot, the low ones of a link's word.
    pub slot_bits: u32,
    /// Multipliers of the mixed word that a print is a part of, as `Machine::madd` takes them.
    pub multipliers: (i32, i32),
    /// Where a print lies in the mixed word.
    pub fingerprint_shift: u32,
    /// Bits of a print.
    pub fingerprint_bits: u32,
}
