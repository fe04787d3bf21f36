//! The vectors and masks of the AVX-512 machines.

use core::arch::x86_64::{__m512i, __mmask16};
use core::ops::{BitAnd, BitOr, Not};

/// A vector: `W` registers of lanes.
#[derive(Clone, Copy)]
pub struct V<const G: bool, const W: usize>(pub(super) [__m512i; W]);

/// A mask: `W` k-registers.
#[derive(Clone, Copy)]
pub struct Mask<const W: usize>(pub(super) [__mmask16; W]);

impl<const W: usize> BitAnd for Mask<W> {
    type Output = Self;
    #[inline(always)]
    fn bitand(mut self, o: Self) -> Self {
        for i in 0..W {
            self.0[i] &= o.0[i];
        }
        self
    }
}
impl<const W: usize> BitOr for Mask<W> {
    type Output = Self;
    #[inline(always)]
    fn bitor(mut self, o: Self) -> Self {
        for i in 0..W {
            self.0[i] |= o.0[i];
        }
        self
    }
}
impl<const W: usize> Not for Mask<W> {
    type Output = Self;
    #[inline(always)]
    fn not(mut self) -> Self {
        for k in &mut self.0 {
            *k = !*k;
        }
        self
    }
}
