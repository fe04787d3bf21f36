//! The vectors and masks of the AVX2 machines.

use core::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_or_si256, _mm256_set1_epi32, _mm256_xor_si256,
};
use core::ops::{BitAnd, BitOr, Not};

/// A vector: `W` registers of lanes.
#[derive(Clone, Copy)]
pub struct V<const G: bool, const W: usize>(pub(super) [__m256i; W]);

/// A mask: `W` registers, in which a lane is set if its sign bit is set.
#[derive(Clone, Copy)]
pub struct Mask<const W: usize>(pub(super) [__m256i; W]);

impl<const W: usize> BitAnd for Mask<W> {
    type Output = Self;
    #[inline(always)]
    fn bitand(mut self, o: Self) -> Self {
        for i in 0..W {
            self.0[i] = intrinsic!(_mm256_and_si256(self.0[i], o.0[i]));
        }
        self
    }
}
impl<const W: usize> BitOr for Mask<W> {
    type Output = Self;
    #[inline(always)]
    fn bitor(mut self, o: Self) -> Self {
        for i in 0..W {
            self.0[i] = intrinsic!(_mm256_or_si256(self.0[i], o.0[i]));
        }
        self
    }
}
impl<const W: usize> Not for Mask<W> {
    type Output = Self;
    #[inline(always)]
    fn not(mut self) -> Self {
        for k in &mut self.0 {
            *k = intrinsic!(_mm256_xor_si256(*k, _mm256_set1_epi32(-1)));
        }
        self
    }
}
