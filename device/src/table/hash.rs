//! The hash of each table: the positions of an id's links, and its fingerprint, computed without
//! overflow.
//!
//! `paper`: link r is at (a1·x + r·((a2·x mod S)|1)) mod S (Eq. 9 and 11). Only the low m bits of a
//! factor matter, so both are masked first: a product of 15 bits by 15 bits is below 2^31.
//! Selections with a stride of 2^m all collide, and this hash hits 26-64 % if 8 of every 64 ids are
//! selected.
//!
//! `wide`: the mixed word of an id is the sum of its 16 low and 8 high bits, each multiplied by a
//! constant of 15 bits ([`Machine::madd`]: two instructions on x86). The first link and the
//! fingerprint are the *high* bits of its low 20. That is linear, so runs of ids, which is what an
//! indexer selects, are spread evenly over the links and seldom collide. The stride is made from
//! the mixed word in the same way, which is not linear: where a lattice of ids meets a lattice of
//! links, their probe sequences differ.
//!
//! `cargo run --release -p avsg-device --example hash_search` measures the constants and repeats
//! the search for them; `tests/kernels/structured.rs` asserts the result. The multiplier of the low
//! bits lets no two ids of a run of 0.35 times as many ids as links have the same first link, from 2^9
//! links on. Over 36 patterns, four offsets up to 9 million, five sizes and both geometries, at most
//! 1.42 % of the ids find no link in a full table, and 0.10 % on average. A first link that is not linear
//! is as good as an ideal hash in this measurement (0.59 and 0.06 %), but ids of real traces collide more
//! often on it: Stage One takes 4 to 14 % longer.

use super::params::{Params, Table};
use crate::machine::links::Links;
use crate::machine::{Machine, search};

/// The number of low bits of a mixed word; links, strides and fingerprints are the highest of them.
pub const MIX_BITS: u32 = 20;
/// The largest number of bits of a stride, because [`Machine::mul_scalar`] takes factors below
/// 2^15.
pub const STRIDE_BITS: u32 = 15;
/// Two multipliers below 2^15: one for the low 16 bits of a word, and one for the eight bits above.
pub type Multipliers = (i32, i32);
/// The multipliers of the mixed word, and those of the stride.
pub const MULTIPLIERS: [Multipliers; 2] = [(3_145, 26_115), (27_139, 2_169)];

/// Returns the word that links and fingerprint are made from; for `paper` it is the id.
#[inline(always)]
pub fn mixed<M: Machine>(m: M, p: &Params, x: M::V) -> M::V {
    match p.table {
        Table::Paper { .. } => x,
        Table::Wide => m.name_vector("mixed", madd(m, x, MULTIPLIERS[0])),
    }
}

/// Calls [`Machine::madd`] with a pair of multipliers.
#[inline(always)]
fn madd<M: Machine>(m: M, x: M::V, (p, q): Multipliers) -> M::V {
    m.madd(x, p, q)
}

/// Returns the highest `bits` of the low 20 bits.
#[inline(always)]
fn top<M: Machine>(m: M, mixed: M::V, bits: u32) -> M::V {
    m.low_bits(m.shr(mixed, MIX_BITS - bits), bits)
}

/// Returns (a·x) mod S. Both factors are masked to m bits, so the product does not overflow.
#[inline(always)]
fn product<M: Machine>(m: M, p: &Params, x: M::V, a: u32) -> M::V {
    let bits = p.slot_bits();
    m.low_bits(m.mul_scalar(m.low_bits(x, bits), m.scalar((a & (p.slots - 1)) as i32)), bits)
}

/// Returns the position of an id's first link.
#[inline(always)]
pub fn first_link<M: Machine>(m: M, p: &Params, mixed: M::V) -> M::V {
    match p.table {
        Table::Paper { a1, .. } => m.name_vector("linkIndex", product(m, p, mixed, a1)),
        Table::Wide => m.name_vector("linkIndex", top(m, mixed, p.link_bits())),
    }
}

/// Returns the distance between an id's links. It is odd, so all positions differ, and below 2^15.
#[inline(always)]
fn stride<M: Machine>(m: M, p: &Params, mixed: M::V) -> M::V {
    let even = match p.table {
        Table::Paper { a2, .. } => product(m, p, mixed, a2),
        Table::Wide => top(m, madd(m, mixed, MULTIPLIERS[1]), stride_bits(p)),
    };
    m.name_vector("stride", even | 1)
}

/// Returns the position of an id's link r.
#[inline(always)]
pub fn nth_link<M: Machine>(m: M, p: &Params, mixed: M::V, r: M::Scalar) -> M::V {
    let step = m.name_vector("step", m.mul_scalar(stride(m, p, mixed), r));
    m.name_vector("linkIndex", m.low_bits(first_link(m, p, mixed) + step, p.link_bits()))
}

/// Returns the number of bits of a stride in a [`sequence`].
#[inline(always)]
fn stride_bits(p: &Params) -> u32 {
    p.link_bits().min(STRIDE_BITS)
}

/// Returns whether the first position and the stride of an id fit one word, so that they are
/// computed once and not in every round.
#[inline(always)]
pub fn sequence_fits(p: &Params) -> bool {
    p.link_bits() + stride_bits(p) < 32
}

/// Returns the probe sequence of an id as a word: its stride above its first position, or the id
/// itself if these do not fit a word.
#[inline(always)]
pub fn sequence<M: Machine>(m: M, p: &Params, x: M::V, mixed: M::V) -> M::V {
    if sequence_fits(p) {
        m.shl(stride(m, p, mixed), p.link_bits()) | first_link(m, p, mixed)
    } else {
        x
    }
}

/// Returns the largest [`sequence`].
#[inline(always)]
pub fn max_sequence(p: &Params) -> i32 {
    (u32::MAX >> (32 - p.link_bits() - stride_bits(p))).cast_signed()
}

/// Returns the first position of a probe sequence.
#[inline(always)]
pub fn first_in_sequence<M: Machine>(m: M, p: &Params, sequence: M::V) -> M::V {
    if sequence_fits(p) {
        m.low_bits(sequence, p.link_bits())
    } else {
        first_link(m, p, mixed(m, p, sequence))
    }
}

/// Returns position r of a probe sequence.
#[inline(always)]
pub fn nth_in_sequence<M: Machine>(m: M, p: &Params, sequence: M::V, r: M::Scalar) -> M::V {
    if sequence_fits(p) {
        search::position(m, p.link_bits(), sequence, r)
    } else {
        nth_link(m, p, mixed(m, p, sequence), r)
    }
}

/// Returns the shape of the links of a `wide` table, as [`Machine::find`] takes it.
pub fn links(p: &Params) -> Links {
    Links {
        retries: p.retries,
        position_bits: p.link_bits(),
        slots: p.slots,
        multipliers: MULTIPLIERS[0],
        fingerprint_shift: MIX_BITS - p.fingerprint_bits(),
        fingerprint_bits: p.fingerprint_bits(),
    }
}

/// Returns the fingerprint of an id, 23 - m bits. For `paper` it is phi(x) = x mod F with F =
/// 2^(23-m) (defined before Eq. 3).
#[inline(always)]
pub fn fingerprint<M: Machine>(m: M, p: &Params, mixed: M::V) -> M::V {
    let fingerprint = match p.table {
        Table::Paper { .. } => m.low_bits(mixed, p.fingerprint_bits()),
        Table::Wide => top(m, mixed, p.fingerprint_bits()),
    };
    m.name_vector("fingerprint", fingerprint)
}

/// Returns the word of a valid link from an id to a slot.
#[inline(always)]
pub fn link_word<M: Machine>(m: M, p: &Params, mixed: M::V, slot: M::V) -> M::V {
    m.shl(fingerprint(m, p, mixed), p.slot_bits()) | slot
}
