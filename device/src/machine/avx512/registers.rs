//! The vectors and masks of the AVX-512 machines.

use core::arch::x86_64::{__m512i, __mmask16};
use core::ops::{BitAnd, BitOr, Not};

/// The bytes 0, 1, … 63.
pub(super) const BYTES: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut i = 0;
    while i < 64 {
        bytes[i] = i as u8;
        i += 1;
    }
    bytes
};

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
