//! AVX2: a vector is four registers of eight lanes, and masks are registers too.
//!
//! Only the sign bit of each lane of a mask is significant. So a sign test costs nothing, a
//! selection is one blend, and only a compression or a scatter moves the bits to a scalar register.
//! AVX2 has no compression instruction: a table of 256 permutations, 2 KB, replaces it.
//!
//! A gather has two forms, because the faster one depends on the CPU: `vpgatherdd`, and eight scalar
//! loads (the parameter of [`Avx2`]). The host measures both when it starts.

use super::cpu::{Column, Cpu, Kernel, Life, Scalar};
use super::operators::{mask_operators, vector_operators};
use super::sparse::append_chosen;
use super::x86::{Mask, REGISTERS, V, lane_operations, register_operators};
use core::arch::x86_64::*;
use core::arch::x86_64::{
    _mm256_add_epi32 as add, _mm256_and_si256 as and, _mm256_loadu_si256 as load,
    _mm256_madd_epi16 as multiply_add, _mm256_mullo_epi32 as mul, _mm256_or_si256 as or,
    _mm256_set1_epi32 as set1, _mm256_sll_epi32 as shl, _mm256_srl_epi32 as shr,
    _mm256_storeu_si256 as store, _mm256_sub_epi32 as sub, _mm256_xor_si256 as xor,
};
use core::array::from_fn;

/// The AVX2 machine of `8 * REGISTERS` lanes. With `GATHER`, it gathers by
/// `vpgatherdd`.
#[derive(Clone, Copy, Debug)]
pub struct Avx2<const GATHER: bool>(());

/// Calls one intrinsic, or a short sequence of them, in a function that holds the token.
macro_rules! intrinsic {
    ($e:expr) => {
        // SAFETY: `self`, or a register of this machine, exists only because `detect` has found
        // AVX2, BMI, POPCNT and LZCNT, so the instructions exist. An access to memory is justified
        // by the comment at its place.
        unsafe { $e }
    };
}

mod parts;

// A lane is set if its sign bit is set.
mask_operators!(
    [] Mask<__m256i>,
    |a, b| a.zip(b, #[inline(always)] |a, b| intrinsic!(_mm256_and_si256(a, b))),
    a.zip(b, #[inline(always)] |a, b| intrinsic!(_mm256_or_si256(a, b))),
    a.zip(a, #[inline(always)] |a, _| intrinsic!(_mm256_xor_si256(a, _mm256_set1_epi32(-1))))
);

register_operators!(V<__m256i, G>, Avx2::<G>(()));

impl<const G: bool> Avx2<G> {
    /// Returns the machine if the CPU and the operating system support AVX2, BMI, POPCNT and LZCNT.
    pub fn detect() -> Option<Self> {
        super::cpuid::has_avx2().then_some(Self(()))
    }

    /// Runs a kernel, compiled with the instructions of this machine.
    pub fn run<K: Kernel>(self, kernel: K) -> K::Out {
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
        fn avsg_kernel_avx2<const G: bool, K: Kernel>(m: Avx2<G>, kernel: K) -> K::Out {
            kernel.run(m)
        }
        // tests/kernels/codegen.rs finds the machine code by this name.
        intrinsic!(avsg_kernel_avx2(self, kernel))
    }
}

impl<const G: bool> Cpu for Avx2<G> {
    const LANES: usize = 8 * REGISTERS;
    type V = V<__m256i, G>;
    type K = Mask<__m256i>;

    lane_operations!(256);

    #[inline(always)]
    fn first_lanes(self, n: usize) -> Self::K {
        let n = intrinsic!(_mm256_set1_epi32(n.min(8 * REGISTERS) as i32));
        // It is a loop, because a closure in `array::map` compiles to a call.
        let mut k = Mask(Cpu::iota(self, 0).0);
        for lanes in &mut k.0 {
            *lanes = intrinsic!(_mm256_cmpgt_epi32(n, *lanes));
        }
        k
    }
    #[inline(always)]
    fn count(self, k: Self::K) -> usize {
        let mut n = 0;
        for k in k.0 {
            n += self.bits(k).count_ones() as usize;
        }
        n
    }
    #[inline(always)]
    fn select(self, k: Self::K, mut yes: Self::V, no: Self::V) -> Self::V {
        for i in 0..REGISTERS {
            yes.0[i] = self.blend(k.0[i], yes.0[i], no.0[i]);
        }
        yes
    }
    #[inline(always)]
    fn eq(self, a: Self::V, b: Self::V) -> Self::K {
        Mask(
            a.zip(
                b,
                #[inline(always)]
                |a, b| intrinsic!(_mm256_cmpeq_epi32(a, b)),
            )
            .0,
        )
    }
    #[inline(always)]
    fn is_negative(self, v: Self::V) -> Self::K {
        Mask(v.0)
    }
    #[inline(always)]
    fn gather(self, column: &Column<'_>, index: Self::V) -> Self::V {
        let words = &*column.data;
        index.map(
            #[inline(always)]
            |index| {
                let index = self.reduced(index, column.mask);
                if G {
                    // Every index is at most the column's mask, which is below its length.
                    return intrinsic!(_mm256_i32gather_epi32::<4>(words.as_ptr(), index));
                }
                let i = self.lanes(index);
                self.gathered(from_fn(
                    #[inline(always)]
                    |n| {
                        // SAFETY: `reduced` made the index at most the column's mask, which
                        // `Column::new` made smaller than the length of the column.
                        unsafe { *words.get_unchecked(i[n] as usize) }
                    },
                ))
            },
        )
    }
    #[inline(always)]
    fn scatter(self, column: &mut Column<'_>, index: Self::V, v: Self::V, k: Self::K) {
        let mask = column.mask;
        let words = &mut *column.data;
        for r in 0..REGISTERS {
            let set = self.bits(k.0[r]);
            // The last registers of a short list have no set lane.
            if set == 0 {
                continue;
            }
            let (i, v) = (self.lanes(self.reduced(index.0[r], mask)), self.lanes(v.0[r]));
            // This loop has no branch: a lane that is not set writes back the word that it reads.
            for n in 0..8 {
                // SAFETY: `reduced` made the index at most the column's mask, which `Column::new`
                // made smaller than the length of the column.
                let word = unsafe { words.get_unchecked_mut(i[n] as usize) };
                *word = if set >> n & 1 == 1 { v[n] as i32 } else { *word };
            }
        }
    }
    #[inline(always)]
    fn compress(self, to: &mut [i32], at: usize, v: Self::V, k: Self::K) {
        let words = &mut to[at..at + 8 * REGISTERS];
        let mut done = 0;
        for i in 0..REGISTERS {
            let set = self.bits(k.0[i]);
            self.pack(words, done, v.0[i], set);
            done += set.count_ones() as usize;
        }
    }
    #[inline(always)]
    fn gather_life(self, life: &Life<'_>, slot: Self::V) -> Self::V {
        let bytes = &*life.data;
        slot.map(
            #[inline(always)]
            |slot| {
                let i = self.lanes(self.reduced(slot, life.mask));
                self.gathered(from_fn(
                    #[inline(always)]
                    |n| {
                        // SAFETY: the index is at most the column's mask, and SLACK more bytes follow.
                        i32::from(unsafe { *bytes.get_unchecked(i[n] as usize) })
                    },
                ))
            },
        )
    }

    #[inline(always)]
    fn age(self, life: &mut [i8], by: u8, from: i8) {
        let from = intrinsic!(_mm256_set1_epi8(from));
        // 128 is not a signed byte, so it is subtracted in two steps of 64.
        let half = intrinsic!(_mm256_set1_epi8((by / 2) as i8));
        let rest = intrinsic!(_mm256_set1_epi8((by - by / 2) as i8));
        for chunk in life.chunks_exact_mut(32) {
            // `chunk` is 32 bytes, the size of the load and of the store.
            let l = intrinsic!(_mm256_loadu_si256(chunk.as_ptr().cast()));
            let aged = intrinsic!(_mm256_subs_epi8(_mm256_subs_epi8(l, half), rest));
            let aged = intrinsic!(_mm256_blendv_epi8(aged, l, _mm256_cmpgt_epi8(from, l)));
            intrinsic!(_mm256_storeu_si256(chunk.as_mut_ptr().cast(), aged));
        }
    }
    #[inline(always)]
    fn map_life(self, to: &mut [i8], life: &[i8], table: &[i8; 256]) {
        // The entries of sixteen lifetimes, once in each half of a register.
        let mut rows = [intrinsic!(_mm256_setzero_si256()); 16];
        for (n, row) in rows.iter_mut().enumerate() {
            let bytes = &table[16 * n..16 * n + 16];
            // `bytes` has 16 bytes, the size of the load.
            let bytes = intrinsic!(_mm_loadu_si128(bytes.as_ptr().cast()));
            *row = intrinsic!(_mm256_broadcastsi128_si256(bytes));
        }
        for (n, chunk) in life.chunks_exact(32).enumerate() {
            // `chunk` is 32 bytes, the size of the load.
            let l = intrinsic!(_mm256_loadu_si256(chunk.as_ptr().cast()));
            let mapped = self.entries(&rows, l);
            let to = &mut to[32 * n..32 * n + 32];
            // `to` is 32 bytes, the size of the store.
            intrinsic!(_mm256_storeu_si256(to.as_mut_ptr().cast(), mapped));
        }
    }
}
