//! What the x86 machines share: a vector is [`REGISTERS`] registers, and nearly all operations do the same to
//! each of them, by the intrinsic of the machine's width.

/// The number of registers in a vector. One id costs two dependent gathers; with more registers in flight
/// their latencies overlap. With more lanes in a vector, fewer vectors have a lane that a list takes and
/// others that have none, so that the branch over an empty append is predicted.
pub const REGISTERS: usize = 4;

/// A vector of a machine that gathers by `vpgatherdd` with `GATHER`, in registers `R`.
#[derive(Clone, Copy)]
pub struct V<R, const GATHER: bool>(pub(super) [R; REGISTERS]);

impl<R: Copy, const G: bool> V<R, G> {
    /// Applies `f` to each register.
    #[inline(always)]
    pub(super) fn map(mut self, f: impl Fn(R) -> R) -> Self {
        for r in &mut self.0 {
            *r = f(*r);
        }
        self
    }

    /// Applies `f` to each pair of registers.
    #[inline(always)]
    pub(super) fn zip(mut self, b: Self, f: impl Fn(R, R) -> R) -> Self {
        for i in 0..REGISTERS {
            self.0[i] = f(self.0[i], b.0[i]);
        }
        self
    }
}

/// A mask: registers `R`.
#[derive(Clone, Copy)]
pub struct Mask<R>(pub(super) [R; REGISTERS]);

impl<R: Copy> Mask<R> {
    /// Applies `f` to each pair of registers.
    #[inline(always)]
    pub(super) fn zip(self, b: Self, f: impl Fn(R, R) -> R) -> Self {
        Self(V::<R, false>(self.0).zip(V(b.0), f).0)
    }
}

/// Implements the operators of a machine's vectors. The machine has the macro `intrinsic!`.
macro_rules! register_operators {
    ($v:ty, $m:expr) => {
        vector_operators!(
            [const G: bool] $v, $m,
            |a, b|
            Add add a.zip(b, #[inline(always)] |a, b| intrinsic!(add(a, b)));
            Sub sub a.zip(b, #[inline(always)] |a, b| intrinsic!(sub(a, b)));
            Mul mul a.zip(b, #[inline(always)] |a, b| intrinsic!(mul(a, b)));
            BitAnd bitand a.zip(b, #[inline(always)] |a, b| intrinsic!(and(a, b)));
            BitOr bitor a.zip(b, #[inline(always)] |a, b| intrinsic!(or(a, b)));
        );
    };
}
pub(super) use register_operators;

/// Implements the operations of [`Cpu`](super::cpu::Cpu) that the machines share, for registers of so many
/// bits. The machine has the macro `intrinsic!`, the intrinsics under short names, and the methods `count_up`,
/// `padded`, `chosen` and `write_all`.
macro_rules! lane_operations {
    ($bits:literal) => {
        #[inline(always)]
        fn shl(self, v: Self::V, bits: u32) -> Self::V {
            let bits = intrinsic!(_mm_cvtsi32_si128(bits as i32));
            v.map(
                #[inline(always)]
                |v| intrinsic!(shl(v, bits)),
            )
        }
        #[inline(always)]
        fn shr(self, v: Self::V, bits: u32) -> Self::V {
            let bits = intrinsic!(_mm_cvtsi32_si128(bits as i32));
            v.map(
                #[inline(always)]
                |v| intrinsic!(shr(v, bits)),
            )
        }
        #[inline(always)]
        fn splat(self, value: i32) -> Self::V {
            V([intrinsic!(set1(value)); REGISTERS])
        }
        #[inline(always)]
        fn iota(self, from: i32) -> Self::V {
            let mut v = Cpu::splat(self, 0);
            for i in 0..REGISTERS {
                v.0[i] = self.count_up(from + ($bits / 32) * i as i32);
            }
            v
        }
        #[inline(always)]
        fn mul_scalar(self, v: Self::V, s: i32) -> Self::V {
            // Both factors are below 2^15, so as signed 16-bit halves the high ones are zero.
            let s = intrinsic!(set1(s));
            v.map(
                #[inline(always)]
                |v| intrinsic!(multiply_add(v, s)),
            )
        }
        #[inline(always)]
        fn madd(self, x: Self::V, p: i32, q: i32) -> Self::V {
            // The low half with its highest bit flipped is, as a signed number, x mod 2^16 - 2^15.
            let factors = intrinsic!(set1(p | q << 16));
            let kept = intrinsic!(set1(0xFF_FFFF));
            let flip = intrinsic!(set1(0x8000));
            x.map(
                #[inline(always)]
                |x| {
                    let kept = intrinsic!(and(x, kept));
                    let flipped = intrinsic!(xor(kept, flip));
                    intrinsic!(multiply_add(flipped, factors))
                },
            )
        }
        #[inline(always)]
        fn load(self, from: &[i32], at: usize, _: Self::K) -> Self::V {
            let words = &from[at..at + Self::LANES];
            let mut v = Cpu::splat(self, 0);
            for i in 0..REGISTERS {
                let from = words[$bits / 32 * i..][..$bits / 32].as_ptr().cast();
                // As many words as a register has are behind the address.
                v.0[i] = intrinsic!(load(from));
            }
            v
        }
        #[inline(always)]
        fn store(self, to: &mut [i32], at: usize, v: Self::V, _: Self::K) {
            let words = &mut to[at..at + Self::LANES];
            for i in 0..REGISTERS {
                let to = words[$bits / 32 * i..][..$bits / 32].as_mut_ptr().cast();
                // As many words as a register has are behind the address.
                intrinsic!(store(to, v.0[i]));
            }
        }
        #[inline(always)]
        fn change_life(
            self,
            life: &mut Life<'_>,
            slot: Self::V,
            k: Self::K,
            rule: impl Fn(i8) -> i8,
        ) {
            let mask = life.mask;
            let bytes = &mut *life.data;
            for i in 0..REGISTERS {
                // This loop has no branch: a lane that is not live writes to the pad. A bit scan over
                // the mask was slower.
                for s in self.padded(slot.0[i], mask, k.0[i]) {
                    // SAFETY: the index is at most 16 above the column's mask, and SLACK bytes follow
                    // the mask.
                    let byte = unsafe { bytes.get_unchecked_mut(s as usize) };
                    *byte = rule(*byte);
                }
            }
        }
        #[inline(always)]
        fn count_le(self, life: &[i8], t: i8) -> usize {
            let Some(above) = t.checked_add(1) else { return life.len() };
            let mut n = 0;
            for word in life.as_chunks::<64>().0 {
                n += self.chosen(word, above, false).count_ones() as usize;
            }
            n
        }
        #[inline(always)]
        fn append_life(
            self,
            to: &mut [i32],
            len: usize,
            life: &[i8],
            t: i8,
            equal: bool,
            limit: usize,
        ) -> usize {
            append_chosen(
                to,
                len,
                life,
                limit,
                #[inline(always)]
                |word| self.chosen(word, t, equal),
                #[inline(always)]
                |to, first, set| self.write_all(to, first, set),
            )
        }
    };
}
pub(super) use lane_operations;
