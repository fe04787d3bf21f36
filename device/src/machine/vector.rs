//! The vectors of a CPU machine: [`REGISTERS`] registers, with the operators of the kernel language.

use super::Lanes;
use super::cpu::{Cpu, REGISTERS, Scalar};
use core::ops::{Add, BitAnd, BitOr, Mul, Not, Sub};

/// A vector: its registers, and the machine whose instructions work on them.
#[derive(Clone, Copy)]
pub struct Vector<C: Cpu>(pub(super) C, pub(super) [C::R; REGISTERS]);

/// A mask: that of each register of a vector.
#[derive(Clone, Copy)]
pub struct Mask<C: Cpu>(pub(super) C, pub(super) [C::K; REGISTERS]);

/// An array of the value of an expression for each register. It is no loop, so that it needs no value before.
macro_rules! each {
    ($i:ident => $e:expr) => {
        [each!(@ $i 0 $e), each!(@ $i 1 $e), each!(@ $i 2 $e), each!(@ $i 3 $e)]
    };
    (@ $i:ident $n:literal $e:expr) => {{
        let $i = $n;
        $e
    }};
}
pub(super) use each;

/// What a vector is combined with: another one, or a number in all lanes.
pub trait Operand<C: Cpu> {
    /// Returns its registers.
    fn registers(self, m: C) -> [C::R; REGISTERS];
}
impl<C: Cpu> Operand<C> for Vector<C> {
    #[inline(always)]
    fn registers(self, _: C) -> [C::R; REGISTERS] {
        self.1
    }
}
impl<C: Cpu> Operand<C> for i32 {
    #[inline(always)]
    fn registers(self, m: C) -> [C::R; REGISTERS] {
        [m.splat(self); REGISTERS]
    }
}
impl<C: Cpu> Operand<C> for Scalar {
    #[inline(always)]
    fn registers(self, m: C) -> [C::R; REGISTERS] {
        self.0.registers(m)
    }
}

/// Implements operators by the instructions of the machine.
macro_rules! operators {
    ($($operator:ident $f:ident $instruction:ident;)*) => {$(
        impl<C: Cpu, B: Operand<C>> $operator<B> for Vector<C> {
            type Output = Self;
            #[inline(always)]
            fn $f(self, b: B) -> Self {
                let (Self(m, a), b) = (self, b.registers(self.0));
                Self(m, each!(i => m.$instruction(a[i], b[i])))
            }
        }
    )*};
}
operators! { Add add add; Sub sub sub; Mul mul mul; BitAnd bitand and; BitOr bitor or; }

impl<C: Cpu> Lanes<Scalar> for Vector<C> {}

impl<C: Cpu> BitAnd for Mask<C> {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, b: Self) -> Self {
        Self(self.0, each!(i => self.0.both(self.1[i], b.1[i])))
    }
}
impl<C: Cpu> BitOr for Mask<C> {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, b: Self) -> Self {
        Self(self.0, each!(i => self.0.either(self.1[i], b.1[i])))
    }
}
impl<C: Cpu> Not for Mask<C> {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Self(self.0, each!(i => self.0.others(self.1[i])))
    }
}

impl<C: Cpu> Vector<C> {
    /// The number of lanes.
    pub const LANES: usize = C::LANES * REGISTERS;

    /// Returns the lanes from, from + 1, …
    #[inline(always)]
    pub fn count_up(m: C, from: usize) -> Self {
        Self(m, each!(i => m.count_up((from + C::LANES * i) as i32)))
    }

    /// Reads words at `at`; those of lanes that are not in `live` may be 0.
    #[inline(always)]
    pub fn load(from: &[i32], at: usize, live: Mask<C>) -> Self {
        let words = &from[at..at + Self::LANES];
        Self(live.0, each!(i => live.0.load(&words[C::LANES * i..], live.1[i])))
    }

    /// Writes the words at `at`.
    #[inline(always)]
    pub fn store(self, to: &mut [i32], at: usize) {
        let words = &mut to[at..at + Self::LANES];
        for i in 0..REGISTERS {
            self.0.store(&mut words[C::LANES * i..], self.1[i]);
        }
    }
}

impl<C: Cpu> Mask<C> {
    /// Returns the mask of the first n lanes, or of all.
    #[inline(always)]
    pub fn first(m: C, n: usize) -> Self {
        let past = Vector::count_up(m, 0) - n.min(Vector::<C>::LANES) as i32;
        Self(m, each!(i => m.is_negative(past.1[i])))
    }
}
