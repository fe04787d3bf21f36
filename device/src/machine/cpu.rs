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
    /// A register of lanes. A value of the type exists only if the token of the machine existed.
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
    /// Adds lane by lane; no lane may overflow.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// Subtracts lane by lane; no lane may overflow.
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    /// Multiplies lane by lane and returns the low 32 bits; no lane may overflow.
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// Returns the bitwise AND of each lane.
    fn and(self, a: Self::V, b: Self::V) -> Self::V;
    /// Returns the bitwise OR of each lane.
    fn or(self, a: Self::V, b: Self::V) -> Self::V;
    /// See [`Machine::shl`](super::Machine::shl).
    #[inline(always)]
    fn shl(self, v: Self::V, bits: u32) -> Self::V {
        self.mul(v, self.splat(1 << bits))
    }
    /// See [`Machine::mul_scalar`](super::Machine::mul_scalar).
    #[inline(always)]
    fn mul_scalar(self, v: Self::V, s: i32) -> Self::V {
        self.mul(v, self.splat(s))
    }
    /// See [`Machine::madd`](super::Machine::madd).
    #[inline(always)]
    fn madd(self, x: Self::V, p: i32, q: i32) -> Self::V {
        let low = self.and(x, self.splat(0xFFFF));
        let high = self.and(self.shr(x, 16), self.splat(0xFF));
        let shifted = self.add(self.mul(low, self.splat(p)), self.splat(-32768 * p));
        self.add(shifted, self.mul(high, self.splat(q)))
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
    /// Writes `value` to life\[slot\] for the lanes of `k`.
    fn set_life(self, life: &mut Life<'_>, slot: Self::V, value: i8, k: Self::K);
    /// Replaces life\[slot\] by rule\[life\[slot\] + 128\] for the lanes of `k`.
    fn step_life(self, life: &mut Life<'_>, slot: Self::V, rule: &[i8; 256], k: Self::K);

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

/// Implements the operators of a register type. `$m` is an expression that makes the token of the
/// machine: a value of `$v` exists, so the machine was detected.
#[macro_export]
#[doc(hidden)]
macro_rules! vector_operators {
    ($g:tt $v:ty, $m:expr) => {
        $crate::vector_operators!(@same $g $v, $m, Add add);
        $crate::vector_operators!(@same $g $v, $m, Sub sub);
        $crate::vector_operators!(@same $g $v, $m, Mul mul);
        $crate::vector_operators!(@same $g $v, $m, BitAnd bitand and);
        $crate::vector_operators!(@same $g $v, $m, BitOr bitor or);
        $crate::vector_operators!(@with $g $v, $m, i32, Add add, x => x);
        $crate::vector_operators!(@with $g $v, $m, i32, Mul mul, x => x);
        $crate::vector_operators!(@with $g $v, $m, i32, BitAnd bitand, x => x);
        $crate::vector_operators!(@with $g $v, $m, i32, BitOr bitor, x => x);
        $crate::vector_operators!(@with $g $v, $m, $crate::machine::cpu::Scalar, Add add, x => x.value());
        $crate::vector_operators!(@with $g $v, $m, $crate::machine::cpu::Scalar, Sub sub, x => x.value());
        $crate::vector_operators!(@with $g $v, $m, $crate::machine::cpu::Scalar, Mul mul, x => x.value());
        $crate::vector_operators!(@bound $g $v);
    };
    (@bound [$($g:tt)*] $v:ty) => {
        impl<$($g)*> $crate::machine::lanes::Lanes<$crate::machine::cpu::Scalar> for $v {}
    };
    (@same $g:tt $v:ty, $m:expr, $tr:ident $f:ident) => {
        $crate::vector_operators!(@same $g $v, $m, $tr $f $f);
    };
    (@same [$($g:tt)*] $v:ty, $m:expr, $tr:ident $f:ident $op:ident) => {
        impl<$($g)*> core::ops::$tr for $v {
            type Output = Self;
            #[inline(always)]
            fn $f(self, o: Self) -> Self { $crate::machine::cpu::Cpu::$op($m, self, o) }
        }
    };
    (@with [$($g:tt)*] $v:ty, $m:expr, $t:ty, $tr:ident $f:ident, $x:ident => $e:expr) => {
        impl<$($g)*> core::ops::$tr<$t> for $v {
            type Output = Self;
            #[inline(always)]
            fn $f(self, $x: $t) -> Self {
                core::ops::$tr::$f(self, $crate::machine::cpu::Cpu::splat($m, $e))
            }
        }
    };
}

/// Implements the operators of a mask type: each is an expression of the masks `$a` and `$b`.
macro_rules! mask_operators {
    ([$($g:tt)*] $k:ty, |$a:ident, $b:ident| $and:expr, $or:expr, $not:expr) => {
        impl<$($g)*> core::ops::BitAnd for $k {
            type Output = Self;
            #[inline(always)]
            fn bitand(self, $b: Self) -> Self {
                let $a = self;
                $and
            }
        }
        impl<$($g)*> core::ops::BitOr for $k {
            type Output = Self;
            #[inline(always)]
            fn bitor(self, $b: Self) -> Self {
                let $a = self;
                $or
            }
        }
        impl<$($g)*> core::ops::Not for $k {
            type Output = Self;
            #[inline(always)]
            fn not(self) -> Self {
                let $a = self;
                $not
            }
        }
    };
}
pub(super) use mask_operators;
