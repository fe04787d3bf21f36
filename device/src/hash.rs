//! Where an id's links are, and its print: each table's hash without overflow.
//!
//! `paper`: link r is (a1·x + r·((a2·x mod S)|1)) mod S. Only the low m bits of a factor matter, so both
//! are masked first: 15 bits x 15 bits stay below 2^31. Stride-2^m selections all collide, and low-bit
//! hashing hits 26-64 % on 8 of every 64 ids.
//!
//! `wide`: x splits into 11 low and 11 high bits, each multiplied by a 20-bit constant and cut to 20 bits;
//! the link is the *high* bits of the sum, the stride those of a second sum. The constants are the best
//! of 5 million sets over 36 patterns (strides 1..4096, runs, blocks, random; two offsets), S of 512 to
//! 8192 and both link geometries: at worst 0.44 % of the ids find no link in a full table, 0.06 % on
//! average (an ideal random hash: 0.4 %). The design's first set had 3.7 and 0.40 %. The search was a
//! throwaway program; `tests/structured.rs` is what guards its outcome.

use crate::machine::Machine;
use crate::params::{Params, Table};

/// Bits of the mixed word.
const MIX_BITS: u32 = 20;
/// Multipliers of the first link.
const FIRST: (i32, i32) = (961_335, 473_365);
/// Multipliers of the stride and the print.
const STEP: (i32, i32) = (513_113, 1_044_211);

/// ((lo·p mod 2^20) + (hi·q mod 2^20)) mod 2^20 for x = hi·2^11 + lo < 2^22.
#[inline(always)]
fn mix<M: Machine>(m: M, x: M::V, (p, q): (i32, i32)) -> M::V {
    let (lo, hi) = (m.low(x, 11), m.low(m.shr(x, 11), 11));
    // One product need not be cut first: 2047 · 961335 + 2^20 is below 2^31, as `check` proves.
    m.low(lo * p + m.low(hi * q, MIX_BITS), MIX_BITS)
}

/// (a·x) mod S by masked factors.
#[inline(always)]
fn product<M: Machine>(m: M, p: &Params, x: M::V, a: u32) -> M::V {
    let bits = p.slot_bits();
    m.low(m.low(x, bits) * ((a & (p.slots - 1)) as i32), bits)
}

/// The position of an id's first link.
#[inline(always)]
pub fn first<M: Machine>(m: M, p: &Params, x: M::V) -> M::V {
    match p.table {
        Table::Paper { a1, .. } => product(m, p, x, a1),
        Table::Wide => m.shr(mix(m, x, FIRST), MIX_BITS - p.link_bits()),
    }
}

/// The distance between an id's links: odd, so all positions differ.
#[inline(always)]
pub fn stride<M: Machine>(m: M, p: &Params, x: M::V) -> M::V {
    match p.table {
        Table::Paper { a2, .. } => product(m, p, x, a2) | 1,
        Table::Wide => m.shr(mix(m, x, STEP), MIX_BITS - p.link_bits()) | 1,
    }
}

/// The position of an id's link number r.
#[inline(always)]
pub fn nth<M: Machine>(m: M, p: &Params, x: M::V, r: M::Scalar) -> M::V {
    m.low(first(m, p, x) + stride(m, p, x) * r, p.link_bits())
}

/// An id's print, of 23 - m bits. `paper`: the bits above the lowest m.
#[inline(always)]
pub fn print<M: Machine>(m: M, p: &Params, x: M::V) -> M::V {
    match p.table {
        Table::Paper { .. } => m.low(m.shr(x, p.slot_bits()), p.print_bits()),
        Table::Wide => m.shr(mix(m, x, STEP), MIX_BITS - p.print_bits()),
    }
}

/// The word of a valid link from an id to a slot.
#[inline(always)]
pub fn word<M: Machine>(m: M, p: &Params, x: M::V, slot: M::V) -> M::V {
    (print(m, p, x) * (1 << p.slot_bits())) | slot
}
