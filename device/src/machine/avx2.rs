//! AVX2: a vector is one to four registers of eight lanes, and masks are registers too.
//!
//! Only the sign bit of each lane of a mask is significant. So a sign test costs nothing, a
//! selection is one blend, and only a compression or a scatter moves the bits to a scalar register.
//! AVX2 has no compression instruction: a table of 256 permutations, 2 KB, replaces it.
//!
//! A gather has two forms, because the faster one depends on the CPU: `vpgatherdd`, and eight scalar
//! loads (the parameter of [`Avx2`]). The host measures both when it starts.

use super::cpu::{Column, Cpu, Kernel, Life, index};
use super::sparse::append_chosen;
use core::arch::x86_64::*;
use core::array::from_fn;
pub use registers::{Mask, V};

/// The number of registers in a vector. With more lanes in a vector, fewer vectors have a lane that
/// a list takes and others that have none, so that the branch over an empty append is predicted.
pub const WIDE: usize = 4;

/// The AVX2 machine of `8 * W` lanes, where W is in 1..=8. With `GATHER`, it gathers by
/// `vpgatherdd`.
#[derive(Clone, Copy, Debug)]
pub struct Avx2<const GATHER: bool, const W: usize = WIDE>(());

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
mod registers;

impl<const G: bool, const W: usize> Avx2<G, W> {
    /// Returns the machine if the CPU and the operating system support AVX2, BMI, POPCNT and LZCNT.
    pub fn detect() -> Option<Self> {
        const { assert!(W >= 1 && W <= 8, "1 to 8 registers") };
        super::cpuid::has_avx2().then_some(Self(()))
    }

    /// Runs a kernel, compiled with the instructions of this machine.
    pub fn run<K: Kernel>(self, kernel: K) -> K::Out {
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
        fn avsg_kernel_avx2<const G: bool, const W: usize, K: Kernel>(
            m: Avx2<G, W>,
            kernel: K,
        ) -> K::Out {
            kernel.run(m)
        }
        // tests/kernels/codegen.rs finds the machine code by this name.
        intrinsic!(avsg_kernel_avx2(self, kernel))
    }
}

impl<const G: bool, const W: usize> Cpu for Avx2<G, W> {
    const LANES: usize = 8 * W;
    type V = V<G, W>;
    type K = Mask<W>;

    #[inline(always)]
    fn first_lanes(self, n: usize) -> Mask<W> {
        let n = intrinsic!(_mm256_set1_epi32(n.min(8 * W) as i32));
        // It is a loop, because a closure in `array::map` compiles to a call.
        let mut k = Mask(Cpu::iota(self, 0).0);
        for lanes in &mut k.0 {
            *lanes = intrinsic!(_mm256_cmpgt_epi32(n, *lanes));
        }
        k
    }
    #[inline(always)]
    fn count(self, k: Mask<W>) -> usize {
        let mut n = 0;
        for k in k.0 {
            n += self.bits(k).count_ones() as usize;
        }
        n
    }
    #[inline(always)]
    fn splat(self, value: i32) -> V<G, W> {
        V([intrinsic!(_mm256_set1_epi32(value)); W])
    }
    #[inline(always)]
    fn iota(self, from: i32) -> V<G, W> {
        let mut v = Cpu::splat(self, 0);
        for i in 0..W {
            v.0[i] = self.count_up(from + 8 * i as i32);
        }
        v
    }
    #[inline(always)]
    fn add(self, a: V<G, W>, b: V<G, W>) -> V<G, W> {
        self.zip(
            a,
            b,
            #[inline(always)]
            |a, b| intrinsic!(_mm256_add_epi32(a, b)),
        )
    }
    #[inline(always)]
    fn sub(self, a: V<G, W>, b: V<G, W>) -> V<G, W> {
        self.zip(
            a,
            b,
            #[inline(always)]
            |a, b| intrinsic!(_mm256_sub_epi32(a, b)),
        )
    }
    #[inline(always)]
    fn mul(self, a: V<G, W>, b: V<G, W>) -> V<G, W> {
        self.zip(
            a,
            b,
            #[inline(always)]
            |a, b| intrinsic!(_mm256_mullo_epi32(a, b)),
        )
    }
    #[inline(always)]
    fn and(self, a: V<G, W>, b: V<G, W>) -> V<G, W> {
        self.zip(
            a,
            b,
            #[inline(always)]
            |a, b| intrinsic!(_mm256_and_si256(a, b)),
        )
    }
    #[inline(always)]
    fn or(self, a: V<G, W>, b: V<G, W>) -> V<G, W> {
        self.zip(
            a,
            b,
            #[inline(always)]
            |a, b| intrinsic!(_mm256_or_si256(a, b)),
        )
    }
    #[inline(always)]
    fn shl(self, v: V<G, W>, bits: u32) -> V<G, W> {
        let bits = intrinsic!(_mm_cvtsi32_si128(bits as i32));
        self.map(
            v,
            #[inline(always)]
            |v| intrinsic!(_mm256_sll_epi32(v, bits)),
        )
    }
    #[inline(always)]
    fn mul_scalar(self, v: V<G, W>, s: i32) -> V<G, W> {
        // Both factors are below 2^15, so as signed 16-bit halves the high ones are zero.
        let s = intrinsic!(_mm256_set1_epi32(s));
        self.map(
            v,
            #[inline(always)]
            |v| intrinsic!(_mm256_madd_epi16(v, s)),
        )
    }
    #[inline(always)]
    fn madd(self, x: V<G, W>, p: i32, q: i32) -> V<G, W> {
        // The low half with its highest bit flipped is, as a signed number, x mod 2^16 - 2^15.
        let factors = intrinsic!(_mm256_set1_epi32(p | q << 16));
        let (kept, flip) = intrinsic!((_mm256_set1_epi32(0xFF_FFFF), _mm256_set1_epi32(0x8000)));
        self.map(
            x,
            #[inline(always)]
            |x| {
                intrinsic!(_mm256_madd_epi16(
                    _mm256_xor_si256(_mm256_and_si256(x, kept), flip),
                    factors
                ))
            },
        )
    }
    #[inline(always)]
    fn shr(self, v: V<G, W>, bits: u32) -> V<G, W> {
        let bits = intrinsic!(_mm_cvtsi32_si128(bits as i32));
        self.map(
            v,
            #[inline(always)]
            |v| intrinsic!(_mm256_srl_epi32(v, bits)),
        )
    }
    #[inline(always)]
    fn select(self, k: Mask<W>, mut yes: V<G, W>, no: V<G, W>) -> V<G, W> {
        for i in 0..W {
            yes.0[i] = self.blend(k.0[i], yes.0[i], no.0[i]);
        }
        yes
    }
    #[inline(always)]
    fn eq(self, a: V<G, W>, b: V<G, W>) -> Mask<W> {
        Mask(
            self.zip(
                a,
                b,
                #[inline(always)]
                |a, b| intrinsic!(_mm256_cmpeq_epi32(a, b)),
            )
            .0,
        )
    }
    #[inline(always)]
    fn is_negative(self, v: V<G, W>) -> Mask<W> {
        Mask(v.0)
    }
    #[inline(always)]
    fn load(self, from: &[i32], at: usize, _: Mask<W>) -> V<G, W> {
        let words = &from[at..at + 8 * W];
        let mut v = Cpu::splat(self, 0);
        for i in 0..W {
            // `words` is W times 32 bytes, the size of the loads.
            v.0[i] = intrinsic!(_mm256_loadu_si256(words.as_ptr().add(8 * i).cast()));
        }
        v
    }
    #[inline(always)]
    fn store(self, to: &mut [i32], at: usize, v: V<G, W>, _: Mask<W>) {
        let words = &mut to[at..at + 8 * W];
        for i in 0..W {
            // `words` is W times 32 bytes, the size of the stores.
            intrinsic!(_mm256_storeu_si256(words.as_mut_ptr().add(8 * i).cast(), v.0[i]));
        }
    }
    #[inline(always)]
    fn gather(self, column: &Column<'_>, index: V<G, W>) -> V<G, W> {
        let words = column.words();
        self.map(
            index,
            #[inline(always)]
            |index| {
                let index = self.reduced(index, column.mask());
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
    fn scatter(self, column: &mut Column<'_>, index: V<G, W>, v: V<G, W>, k: Mask<W>) {
        let mask = column.mask();
        let words = column.words_mut();
        for r in 0..W {
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
    fn compress(self, to: &mut [i32], at: usize, v: V<G, W>, k: Mask<W>) {
        let words = &mut to[at..at + 8 * W];
        let mut done = 0;
        for i in 0..W {
            let set = self.bits(k.0[i]);
            self.pack(words, done, v.0[i], set);
            done += set.count_ones() as usize;
        }
    }
    #[inline(always)]
    fn gather_life(self, life: &Life<'_>, slot: V<G, W>) -> V<G, W> {
        let bytes = life.all();
        self.map(
            slot,
            #[inline(always)]
            |slot| {
                let i = self.lanes(self.reduced(slot, life.mask()));
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
    fn set_life(self, life: &mut Life<'_>, slot: V<G, W>, value: i8, k: Mask<W>) {
        let mask = life.mask();
        let bytes = life.padded();
        for i in 0..W {
            for s in self.padded(slot.0[i], mask, k.0[i]) {
                // SAFETY: the index is at most 8 above the column's mask, and SLACK bytes follow the mask.
                unsafe { *bytes.get_unchecked_mut(s as usize) = value };
            }
        }
    }
    #[inline(always)]
    fn step_life(self, life: &mut Life<'_>, slot: V<G, W>, rule: &[i8; 256], k: Mask<W>) {
        let mask = life.mask();
        let bytes = life.padded();
        for i in 0..W {
            for s in self.padded(slot.0[i], mask, k.0[i]) {
                // SAFETY: the index is at most 8 above the column's mask, and SLACK bytes follow the mask.
                let byte = unsafe { bytes.get_unchecked_mut(s as usize) };
                *byte = rule[index(*byte)];
            }
        }
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
    #[inline(always)]
    fn count_le(self, life: &[i8], t: i8) -> usize {
        let t = intrinsic!(_mm256_set1_epi8(t));
        let mut above = 0;
        for chunk in life.chunks_exact(32) {
            // `chunk` is 32 bytes, the size of the load.
            let l = intrinsic!(_mm256_loadu_si256(chunk.as_ptr().cast()));
            let k = intrinsic!(_mm256_movemask_epi8(_mm256_cmpgt_epi8(l, t)));
            above += k.count_ones() as usize;
        }
        life.len() - above
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
}

crate::vector_operators!([const G: bool, const W: usize] V<G, W>, Avx2<G, W>, Avx2::<G, W>(()));
