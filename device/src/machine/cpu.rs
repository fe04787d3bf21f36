//! The common part of all CPU machines: columns are slices, a sweep is a loop, and a scalar is an
//! `i32`.
//!
//! A CPU machine implements [`Cpu`], about twenty register operations. The blanket implementation
//! in `lower` makes a [`Machine`](super::Machine) of it, and `vector_operators!` implements the
//! operators of its registers.

use super::lanes::Lanes;
use core::ops::{BitAnd, BitOr, Not};

pub use super::columns::{Column, Life, List, SLACK, Scalar, Tile};

/// A kernel as a value that any CPU machine can run. It is a trait because a closure cannot be
/// generic. The bound is [`Cpu`] and not [`Machine`](super::Machine), because a body makes columns
/// from slices.
pub trait Kernel {
    /// The result of the kernel.
    type Out;
    /// Runs the kernel on a machine. Mark it `#[inline(always)]`, so that it is compiled with the
    /// vector instructions of the machine.
    fn run<M: Cpu>(self, m: M) -> Self::Out;
}

/// The register operations of a CPU machine.
pub trait Cpu: Copy {
    /// The number of lanes of a register.
    const LANES: usize;
    /// A register of lanes. A value of the type exists only if the token of the machine existed. No lane may
    /// overflow by its operators.
    type V: Lanes<Scalar>;
    /// A mask.
    type K: Copy + BitAnd<Output = Self::K> + BitOr<Output = Self::K> + Not<Output = Self::K>;

    /// Returns a mask with the first min(n, LANES) lanes set.
    fn first_lanes(self, n: usize) -> Self::K;
    /// Returns the number of set lanes.
    fn count(self, k: Self::K) -> usize;
    /// Returns a register with `value` in every lane.
    fn splat(self, value: i32) -> Self::V;
    /// Returns the lanes from, from + 1, …
    fn iota(self, from: i32) -> Self::V;
    /// See [`Machine::shl`](super::Machine::shl).
    #[inline(always)]
    fn shl(self, v: Self::V, bits: u32) -> Self::V {
        v * self.splat(1 << bits)
    }
    /// See [`Machine::mul_scalar`](super::Machine::mul_scalar).
    #[inline(always)]
    fn mul_scalar(self, v: Self::V, s: i32) -> Self::V {
        v * self.splat(s)
    }
    /// See [`Machine::madd`](super::Machine::madd).
    #[inline(always)]
    fn madd(self, x: Self::V, p: i32, q: i32) -> Self::V {
        let (low, high) = (x & 0xFFFF, self.shr(x, 16) & 0xFF);
        low * p + -32768 * p + high * q
    }
    /// Shifts each lane right by a constant, filling with zeros.
    fn shr(self, v: Self::V, bits: u32) -> Self::V;
    /// Returns `yes` in the lanes where `k` is set and `no` in the others.
    fn select(self, k: Self::K, yes: Self::V, no: Self::V) -> Self::V;
    /// Returns the lanes where a = b.
    fn eq(self, a: Self::V, b: Self::V) -> Self::K;
    /// Returns the lanes that are < 0.
    fn is_negative(self, v: Self::V) -> Self::K;
    /// Reads LANES words at `at`. A lane that is not in `live` is either the word or 0.
    fn load(self, from: &[i32], at: usize, live: Self::K) -> Self::V;
    /// Writes LANES words at `at`. The words of lanes that are not in `live` become undefined.
    fn store(self, to: &mut [i32], at: usize, v: Self::V, live: Self::K);
    /// Returns the words of a column at the reduced indices.
    fn gather(self, column: &Column<'_>, index: Self::V) -> Self::V;
    /// Writes the lanes of `k` at the reduced indices, in lane order.
    fn scatter(self, column: &mut Column<'_>, index: Self::V, v: Self::V, k: Self::K);
    /// Stores the lanes of `k` next to each other at `at`. It may write up to LANES words there.
    fn compress(self, to: &mut [i32], at: usize, v: Self::V, k: Self::K);
    /// Returns life\[slot\] in each lane, sign-extended.
    fn gather_life(self, life: &Life<'_>, slot: Self::V) -> Self::V;
    /// Replaces life\[slot\] by what `rule` makes of it for the lanes of `k`.
    fn change_life(self, life: &mut Life<'_>, slot: Self::V, k: Self::K, rule: impl Fn(i8) -> i8);

    /// See [`Machine::age`](super::Machine::age).
    #[inline(always)]
    fn age(self, life: &mut [i8], by: u8, from: i8) {
        for l in life.iter_mut().filter(|l| **l >= from) {
            *l = (i16::from(*l) - i16::from(by)).max(-128) as i8;
        }
    }
    /// See [`Machine::map_life`](super::Machine::map_life); the table has the results as bytes.
    #[inline(always)]
    fn map_life(self, to: &mut [i8], life: &[i8], table: &[i8; 256]) {
        for (to, &l) in to.iter_mut().zip(life) {
            *to = table[index(l)];
        }
    }
    /// Returns the number of bytes that are <= t.
    #[inline(always)]
    fn count_le(self, life: &[i8], t: i8) -> usize {
        life.iter().filter(|&&l| l <= t).count()
    }
    /// Appends the indices of bytes < t, or = t if `equal`, to `to` from `len` on, until it holds
    /// `limit`. Returns the new length. `to` has [`SLACK`] words more than `limit`.
    #[inline(always)]
    fn append_life(
        self,
        to: &mut [i32],
        mut len: usize,
        life: &[i8],
        t: i8,
        equal: bool,
        limit: usize,
    ) -> usize {
        for (slot, &l) in life.iter().enumerate() {
            if len >= limit {
                break;
            }
            if if equal { l == t } else { l < t } {
                to[len] = slot as i32;
                len += 1;
            }
        }
        len
    }
}

/// Returns the index of a lifetime in a table of 256 entries.
#[inline(always)]
pub fn index(life: i8) -> usize {
    usize::from(life as u8 ^ 0x80)
}
