//! Where an id's links are, and its print: each table's hash without overflow.
//!
//! `paper`: link r is (a1·x + r·((a2·x mod S)|1)) mod S. Only the low m bits of a factor matter, so both
//! are masked first: 15 bits x 15 bits stay below 2^31. Stride-2^m selections all collide, and low-bit
//! hashing hits 26-64 % on 8 of every 64 ids.
//!
//! `wide`: the mixed word of an id is the sum of its 16 low and 6 high bits, each multiplied by a constant of
//! 15 bits ([`Machine::madd`]: two instructions on x86). The first link and the print are the *high* bits of
//! its low 20. That is linear, so runs of ids, which is what an indexer selects, fall evenly over the links
//! and seldom on each other. The stride is made of the mixed word in the same way, which is not linear: where
//! a lattice of ids does meet a lattice of links, their probe sequences part.
//!
//! `cargo run --release -p avsg-device --example hash_search` measures the constants and repeats the search
//! for them; `tests/kernels/structured.rs` guards the outcome. Over 36 patterns, two offsets, five sizes and both
//! geometries at worst 1.11 % of the ids find no link in a full table, 0.10 % on average; the best of three
//! million sets has 1.07 %. A first link that is not linear is as good as an ideal hash here (0.39 and 0.06
//! %), but ids of real traces meet more often on it: Stage One takes 4 to 14 % longer.

use super::params::{Params, Table};
use super::state::FINGERPRINT_AND_SLOT_BITS;
use crate::machine::links::Links;
use crate::machine::{Machine, search};

/// Bits that links, strides and prints are the highest of.
pub const MIX_BITS: u32 = 20;
/// Bits of a stride, at most: what [`Machine::mul_scalar`] takes.
pub const STRIDE_BITS: u32 = 15;
/// Two multipliers below 2^15: of a word's low 16 bits, and of the six above.
pub type Multipliers = (i32, i32);
/// Those of the mixed word, and those of the stride.
pub const MULTIPLIERS: [Multipliers; 2] = [(27_381, 2_305), (15_605, 3_809)];

/// The word that all else follows from: to `paper` the id itself.
#[inline(always)]
pub fn mixed<M: Machine>(m: M, p: &Params, x: M::V) -> M::V {
    match p.table {
        Table::Paper { .. } => x,
        Table::Wide => m.name_vector("mixed", madd(m, x, MULTIPLIERS[0])),
    }
}

/// [`Machine::madd`] with a pair of multipliers.
#[inline(always)]
fn madd<M: Machine>(m: M, x: M::V, (p, q): Multipliers) -> M::V {
    m.madd(x, p, q)
}

/// The highest `bits` of the low 20.
#[inline(always)]
fn top<M: Machine>(m: M, mixed: M::V, bits: u32) -> M::V {
    m.low_bits(m.shr(mixed, MIX_BITS - bits), bits)
}

/// (a·x) mod S by masked factors.
#[inline(always)]
fn product<M: Machine>(m: M, p: &Params, x: M::V, a: u32) -> M::V {
    let bits = p.slot_bits();
    m.low_bits(m.mul_scalar(m.low_bits(x, bits), m.scalar((a & (p.slots - 1)) as i32)), bits)
}

/// The position of an id's first link.
#[inline(always)]
pub fn first_link<M: Machine>(m: M, p: &Params, mixed: M::V) -> M::V {
    match p.table {
        Table::Paper { a1, .. } => m.name_vector("linkPosition", product(m, p, mixed, a1)),
        Table::Wide => m.name_vector("linkPosition", top(m, mixed, p.link_bits())),
    }
}

/// The distance between an id's links: odd, so all positions differ, and below 2^15.
#[inline(always)]
fn stride<M: Machine>(m: M, p: &Params, mixed: M::V) -> M::V {
    let even = match p.table {
        Table::Paper { a2, .. } => product(m, p, mixed, a2),
        Table::Wide => top(m, madd(m, mixed, MULTIPLIERS[1]), stride_bits(p)),
    };
    m.name_vector("stride", even | 1)
}

/// The position of an id's link number r.
#[inline(always)]
pub fn nth_link<M: Machine>(m: M, p: &Params, mixed: M::V, r: M::Scalar) -> M::V {
    let step = m.name_vector("step", m.mul_scalar(stride(m, p, mixed), r));
    m.name_vector("linkPosition", m.low_bits(first_link(m, p, mixed) + step, p.link_bits()))
}

/// The position of the link after the one at `at`.
#[inline(always)]
pub fn next_link<M: Machine>(m: M, p: &Params, mixed: M::V, at: M::V) -> M::V {
    m.name_vector("linkPosition", m.low_bits(at + stride(m, p, mixed), p.link_bits()))
}

/// Bits of a stride in a [`sequence`].
#[inline(always)]
fn stride_bits(p: &Params) -> u32 {
    p.link_bits().min(STRIDE_BITS)
}

/// Whether an id's first link and stride fit one word, so that they need not be made again in every round.
#[inline(always)]
pub fn sequence_fits(p: &Params) -> bool {
    p.link_bits() + stride_bits(p) < 32
}

/// An id's probe sequence as a word: its stride above its first position, or where these do not fit the id
/// itself.
#[inline(always)]
pub fn sequence<M: Machine>(m: M, p: &Params, x: M::V, mixed: M::V) -> M::V {
    if sequence_fits(p) {
        m.shl(stride(m, p, mixed), p.link_bits()) | first_link(m, p, mixed)
    } else {
        x
    }
}

/// The largest [`sequence`].
#[inline(always)]
pub fn max_sequence(p: &Params) -> i32 {
    (u32::MAX >> (32 - p.link_bits() - stride_bits(p))).cast_signed()
}

/// The first position of a probe sequence.
#[inline(always)]
pub fn first_in_sequence<M: Machine>(m: M, p: &Params, sequence: M::V) -> M::V {
    if sequence_fits(p) {
        m.low_bits(sequence, p.link_bits())
    } else {
        first_link(m, p, mixed(m, p, sequence))
    }
}

/// Position number r of a probe sequence.
#[inline(always)]
pub fn nth_in_sequence<M: Machine>(m: M, p: &Params, sequence: M::V, r: M::Scalar) -> M::V {
    if sequence_fits(p) {
        search::position(m, p.link_bits(), sequence, r)
    } else {
        nth_link(m, p, mixed(m, p, sequence), r)
    }
}

/// What a search over all links of an id has to know of a `wide` table.
pub fn links(p: &Params) -> Links {
    Links {
        retries: p.retries,
        position_bits: p.link_bits(),
        slot_bits: p.slot_bits(),
        multipliers: MULTIPLIERS[0],
        fingerprint_shift: MIX_BITS - p.fingerprint_bits(),
        fingerprint_bits: p.fingerprint_bits(),
    }
}

/// An id's print, of 23 - m bits. `paper`: phi(x) = x mod F with F = 2^(23-m), as the paper defines it before
/// its Eq. 3 (packed-hash-mapping).
#[inline(always)]
pub fn fingerprint<M: Machine>(m: M, p: &Params, mixed: M::V) -> M::V {
    let fingerprint = match p.table {
        Table::Paper { .. } => m.low_bits(mixed, p.fingerprint_bits()),
        Table::Wide => top(m, mixed, p.fingerprint_bits()),
    };
    m.name_vector("fingerprint", fingerprint)
}

/// The print of `wide` of a single id, for S = 2^`slot_bits`: for whoever is no machine.
pub fn fingerprint_of(slot_bits: u32, x: i32) -> i32 {
    let bits = FINGERPRINT_AND_SLOT_BITS - slot_bits;
    let ((low, high), (p, q)) = (((x & 0xFFFF) - 0x8000, (x >> 16) & 0x3F), MULTIPLIERS[0]);
    ((low * p + high * q) >> (MIX_BITS - bits)) & ((1 << bits) - 1)
}

/// The word of a valid link from an id to a slot.
#[inline(always)]
pub fn link_word<M: Machine>(m: M, p: &Params, mixed: M::V, slot: M::V) -> M::V {
    m.shl(fingerprint(m, p, mixed), p.slot_bits()) | slot
}
