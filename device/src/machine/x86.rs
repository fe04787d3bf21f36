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

/// Chooses the intrinsic of 256 bits or the one of 512 bits.
macro_rules! by_width {
    (256, $narrow:ident, $wide:ident) => {
        $narrow
    };
    (512, $narrow:ident, $wide:ident) => {
        $wide
    };
}
pub(super) use by_width;

/// Implements the operations of [`Cpu`](super::cpu::Cpu) that the machines share, for registers of so many
/// bits. The machine has the macro `intrinsic!` and the methods `count_up`, `padded`, `chosen` and
/// `write_all`.
macro_rules! lane_operations {
    ($bits:tt) => {
        $crate::machine::x86::lane_operations! { $bits,
            set1 _mm256_set1_epi32 _mm512_set1_epi32;
            load _mm256_loadu_si256 _mm512_loadu_si512;
            store _mm256_storeu_si256 _mm512_storeu_si512;
            madd _mm256_madd_epi16 _mm512_madd_epi16;
            and _mm256_and_si256 _mm512_and_si512;
            xor _mm256_xor_si256 _mm512_xor_si512;
            {
                add _mm256_add_epi32 _mm512_add_epi32;
                sub _mm256_sub_epi32 _mm512_sub_epi32;
                mul _mm256_mullo_epi32 _mm512_mullo_epi32;
                and _mm256_and_si256 _mm512_and_si512;
                or _mm256_or_si256 _mm512_or_si512;
            }
            {
                shl _mm256_sll_epi32 _mm512_sll_epi32;
                shr _mm256_srl_epi32 _mm512_srl_epi32;
            }
        }
    };
    (
        $bits:tt,
        set1 $set1:ident $set1_wide:ident;
        load $load:ident $load_wide:ident;
        store $store:ident $store_wide:ident;
        madd $madd:ident $madd_wide:ident;
        and $and:ident $and_wide:ident;
        xor $xor:ident $xor_wide:ident;
        {$($zip:ident $narrow:ident $wide:ident;)*}
        {$($shift:ident $shift_narrow:ident $shift_wide:ident;)*}
    ) => {
        $(
            #[inline(always)]
            fn $zip(self, a: Self::V, b: Self::V) -> Self::V {
                a.zip(
                    b,
                    #[inline(always)]
                    |a, b| intrinsic!(by_width!($bits, $narrow, $wide)(a, b)),
                )
            }
        )*
        $(
            #[inline(always)]
            fn $shift(self, v: Self::V, bits: u32) -> Self::V {
                let bits = intrinsic!(_mm_cvtsi32_si128(bits as i32));
                v.map(
                    #[inline(always)]
                    |v| intrinsic!(by_width!($bits, $shift_narrow, $shift_wide)(v, bits)),
                )
            }
        )*
        #[inline(always)]
        fn splat(self, value: i32) -> Self::V {
            V([intrinsic!(by_width!($bits, $set1, $set1_wide)(value)); REGISTERS])
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
            let s = intrinsic!(by_width!($bits, $set1, $set1_wide)(s));
            v.map(
                #[inline(always)]
                |v| intrinsic!(by_width!($bits, $madd, $madd_wide)(v, s)),
            )
        }
        #[inline(always)]
        fn madd(self, x: Self::V, p: i32, q: i32) -> Self::V {
            // The low half with its highest bit flipped is, as a signed number, x mod 2^16 - 2^15.
            let factors = intrinsic!(by_width!($bits, $set1, $set1_wide)(p | q << 16));
            let kept = intrinsic!(by_width!($bits, $set1, $set1_wide)(0xFF_FFFF));
            let flip = intrinsic!(by_width!($bits, $set1, $set1_wide)(0x8000));
            x.map(
                #[inline(always)]
                |x| {
                    let kept = intrinsic!(by_width!($bits, $and, $and_wide)(x, kept));
                    let flipped = intrinsic!(by_width!($bits, $xor, $xor_wide)(kept, flip));
                    intrinsic!(by_width!($bits, $madd, $madd_wide)(flipped, factors))
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
                v.0[i] = intrinsic!(by_width!($bits, $load, $load_wide)(from));
            }
            v
        }
        #[inline(always)]
        fn store(self, to: &mut [i32], at: usize, v: Self::V, _: Self::K) {
            let words = &mut to[at..at + Self::LANES];
            for i in 0..REGISTERS {
                let to = words[$bits / 32 * i..][..$bits / 32].as_mut_ptr().cast();
                // As many words as a register has are behind the address.
                intrinsic!(by_width!($bits, $store, $store_wide)(to, v.0[i]));
            }
        }
        #[inline(always)]
        fn set_life(self, life: &mut Life<'_>, slot: Self::V, value: i8, k: Self::K) {
            let mask = life.mask;
            let bytes = &mut *life.data;
            for i in 0..REGISTERS {
                // This loop has no branch: a lane that is not live writes to the pad. A bit scan over
                // the mask was slower.
                for s in self.padded(slot.0[i], mask, k.0[i]) {
                    // SAFETY: the index is at most 16 above the column's mask, and SLACK bytes follow
                    // the mask.
                    unsafe { *bytes.get_unchecked_mut(s as usize) = value };
                }
            }
        }
        #[inline(always)]
        fn step_life(self, life: &mut Life<'_>, slot: Self::V, rule: &[i8; 256], k: Self::K) {
            let mask = life.mask;
            let bytes = &mut *life.data;
            for i in 0..REGISTERS {
                for s in self.padded(slot.0[i], mask, k.0[i]) {
                    // SAFETY: the index is at most 16 above the column's mask, and SLACK bytes follow
                    // the mask.
                    let byte = unsafe { bytes.get_unchecked_mut(s as usize) };
                    *byte = rule[index(*byte)];
                }
            }
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
