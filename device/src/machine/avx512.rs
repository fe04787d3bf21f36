//! AVX-512: a vector is one to four registers of sixteen lanes, and masks are k-registers.
//!
//! A gather has two forms, because the faster one depends on the CPU: `vpgatherdd`, and sixteen
//! scalar loads (the parameter of [`Avx512`]). The host measures both when it starts. Where a CPU has VBMI,
//! learned lifetimes are mapped to values by it.

use super::cpu::{Column, Cpu, Kernel, Life, index};
use super::sparse::append_chosen;
use core::arch::x86_64::*;
use core::sync::atomic::{AtomicBool, Ordering};
pub use registers::{Mask, V};

/// The number of registers in a vector. One id costs two dependent gathers; with more registers in
/// flight their latencies overlap.
pub const WIDE: usize = 4;

/// The AVX-512 machine of `16 * W` lanes, where W is in 1..=4. With `GATHER`, it gathers by
/// `vpgatherdd`.
#[derive(Clone, Copy, Debug)]
pub struct Avx512<const GATHER: bool, const W: usize = WIDE>(());

/// Whether the CPU has AVX-512 VBMI too, which looks 64 bytes up in a table of 128. `detect` writes it.
static PERMUTES_BYTES: AtomicBool = AtomicBool::new(false);

/// Calls one intrinsic, or a short sequence of them, in a function that holds the token.
macro_rules! intrinsic {
    ($e:expr) => {
        // SAFETY: `self` is a token that `detect` made after it found AVX-512 F, BW and VL, so the
        // instructions exist. An access to memory is justified by the comment at its place.
        unsafe { $e }
    };
}

mod parts;
mod registers;

impl<const G: bool, const W: usize> Avx512<G, W> {
    /// Returns the machine if the CPU and the operating system support AVX-512 F, BW and VL.
    pub fn detect() -> Option<Self> {
        const { assert!(W >= 1 && W <= 4, "1 to 4 registers") };
        super::cpuid::has_avx512().then(|| {
            PERMUTES_BYTES.store(super::cpuid::has_avx512_vbmi(), Ordering::Relaxed);
            Self(())
        })
    }

    /// Returns the names of what the CPU or the operating system lacks for this machine.
    pub fn missing() -> impl Iterator<Item = &'static str> {
        super::cpuid::missing()
    }

    /// Runs a kernel, compiled with the instructions of this machine.
    pub fn run<K: Kernel>(self, kernel: K) -> K::Out {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt,lzcnt")]
        fn avsg_kernel_avx512<const G: bool, const W: usize, K: Kernel>(
            m: Avx512<G, W>,
            kernel: K,
        ) -> K::Out {
            kernel.run(m)
        }
        // tests/kernels/codegen.rs finds the machine code by this name.
        intrinsic!(avsg_kernel_avx512(self, kernel))
    }
}

impl<const G: bool, const W: usize> Cpu for Avx512<G, W> {
    const LANES: usize = 16 * W;
    type V = V<G, W>;
    type K = Mask<W>;

    #[inline(always)]
    fn first_lanes(self, n: usize) -> Mask<W> {
        let all = if n >= 64 { !0 } else { (1u64 << n) - 1 };
        let mut k = Mask([0; W]);
        for i in 0..W {
            k.0[i] = (all >> (16 * i)) as u16;
        }
        k
    }
    #[inline(always)]
    fn count(self, k: Mask<W>) -> usize {
        k.0.iter().map(|k| k.count_ones() as usize).sum()
    }
    #[inline(always)]
    fn splat(self, value: i32) -> V<G, W> {
        V([intrinsic!(_mm512_set1_epi32(value)); W])
    }
    #[inline(always)]
    fn iota(self, from: i32) -> V<G, W> {
        let mut v = Cpu::splat(self, 0);
        for i in 0..W {
            v.0[i] = self.count_up(from + 16 * i as i32);
        }
        v
    }
    #[inline(always)]
    fn add(self, a: V<G, W>, b: V<G, W>) -> V<G, W> {
        self.zip(
            a,
            b,
            #[inline(always)]
            |a, b| intrinsic!(_mm512_add_epi32(a, b)),
        )
    }
    #[inline(always)]
    fn sub(self, a: V<G, W>, b: V<G, W>) -> V<G, W> {
        self.zip(
            a,
            b,
            #[inline(always)]
            |a, b| intrinsic!(_mm512_sub_epi32(a, b)),
        )
    }
    #[inline(always)]
    fn mul(self, a: V<G, W>, b: V<G, W>) -> V<G, W> {
        self.zip(
            a,
            b,
            #[inline(always)]
            |a, b| intrinsic!(_mm512_mullo_epi32(a, b)),
        )
    }
    #[inline(always)]
    fn and(self, a: V<G, W>, b: V<G, W>) -> V<G, W> {
        self.zip(
            a,
            b,
            #[inline(always)]
            |a, b| intrinsic!(_mm512_and_si512(a, b)),
        )
    }
    #[inline(always)]
    fn or(self, a: V<G, W>, b: V<G, W>) -> V<G, W> {
        self.zip(
            a,
            b,
            #[inline(always)]
            |a, b| intrinsic!(_mm512_or_si512(a, b)),
        )
    }
    #[inline(always)]
    fn shl(self, v: V<G, W>, bits: u32) -> V<G, W> {
        let bits = intrinsic!(_mm_cvtsi32_si128(bits as i32));
        self.map(
            v,
            #[inline(always)]
            |v| intrinsic!(_mm512_sll_epi32(v, bits)),
        )
    }
    #[inline(always)]
    fn mul_scalar(self, v: V<G, W>, s: i32) -> V<G, W> {
        // Both factors are below 2^15, so as signed 16-bit halves the high ones are zero.
        let s = intrinsic!(_mm512_set1_epi32(s));
        self.map(
            v,
            #[inline(always)]
            |v| intrinsic!(_mm512_madd_epi16(v, s)),
        )
    }
    #[inline(always)]
    fn madd(self, x: V<G, W>, p: i32, q: i32) -> V<G, W> {
        // The low half with its highest bit flipped is, as a signed number, x mod 2^16 - 2^15.
        let factors = intrinsic!(_mm512_set1_epi32(p | q << 16));
        let (kept, flip) = intrinsic!((_mm512_set1_epi32(0xFF_FFFF), _mm512_set1_epi32(0x8000)));
        self.map(
            x,
            #[inline(always)]
            |x| {
                intrinsic!(_mm512_madd_epi16(
                    _mm512_xor_si512(_mm512_and_si512(x, kept), flip),
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
            |v| intrinsic!(_mm512_srl_epi32(v, bits)),
        )
    }
    #[inline(always)]
    fn select(self, k: Mask<W>, mut yes: V<G, W>, no: V<G, W>) -> V<G, W> {
        for i in 0..W {
            yes.0[i] = intrinsic!(_mm512_mask_blend_epi32(k.0[i], no.0[i], yes.0[i]));
        }
        yes
    }
    #[inline(always)]
    fn eq(self, a: V<G, W>, b: V<G, W>) -> Mask<W> {
        let mut k = Mask([0; W]);
        for i in 0..W {
            k.0[i] = intrinsic!(_mm512_cmpeq_epi32_mask(a.0[i], b.0[i]));
        }
        k
    }
    #[inline(always)]
    fn is_negative(self, v: V<G, W>) -> Mask<W> {
        let mut k = Mask([0; W]);
        for i in 0..W {
            k.0[i] = intrinsic!(_mm512_cmplt_epi32_mask(v.0[i], _mm512_setzero_si512()));
        }
        k
    }
    #[inline(always)]
    fn load(self, from: &[i32], at: usize, _: Mask<W>) -> V<G, W> {
        let words = &from[at..at + 16 * W];
        let mut v = Cpu::splat(self, 0);
        for i in 0..W {
            // `words` is W times 64 bytes, the size of the loads.
            v.0[i] = intrinsic!(_mm512_loadu_si512(words.as_ptr().add(16 * i).cast()));
        }
        v
    }
    #[inline(always)]
    fn store(self, to: &mut [i32], at: usize, v: V<G, W>, _: Mask<W>) {
        let words = &mut to[at..at + 16 * W];
        for i in 0..W {
            // `words` is W times 64 bytes, the size of the stores.
            intrinsic!(_mm512_storeu_si512(words.as_mut_ptr().add(16 * i).cast(), v.0[i]));
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
                    return intrinsic!(_mm512_i32gather_epi32::<4>(index, words.as_ptr()));
                }
                let mut out = [0i32; 16];
                for (o, i) in out.iter_mut().zip(self.lanes(index)) {
                    // SAFETY: `reduced` made the index at most the column's mask, which
                    // `Column::new` made smaller than the length of the column.
                    *o = unsafe { *words.get_unchecked(i as usize) };
                }
                // The words go through memory, because sixteen inserts into a register cost more
                // than the stalled reload. `out` is 64 bytes, the size of the load.
                intrinsic!(_mm512_loadu_si512(core::hint::black_box(&out).as_ptr().cast()))
            },
        )
    }
    #[inline(always)]
    fn scatter(self, column: &mut Column<'_>, index: V<G, W>, v: V<G, W>, k: Mask<W>) {
        let mask = column.mask();
        let words = column.words_mut().as_mut_ptr();
        for i in 0..W {
            // An instruction with an empty mask takes as long as another one, and the last registers
            // of a short list have such masks.
            if k.0[i] == 0 {
                continue;
            }
            let index = self.reduced(index.0[i], mask);
            // Every index is at most the column's mask, which is below its length. The instruction
            // writes conflicting lanes in lane order.
            intrinsic!(_mm512_mask_i32scatter_epi32::<4>(words, k.0[i], index, v.0[i]));
        }
    }
    #[inline(always)]
    fn compress(self, to: &mut [i32], at: usize, v: V<G, W>, k: Mask<W>) {
        let words = &mut to[at..at + 16 * W];
        let mut done = 0;
        for i in 0..W {
            let packed = intrinsic!(_mm512_maskz_compress_epi32(k.0[i], v.0[i]));
            // `words` is W times 64 bytes, and `done` at most 16 lanes for each register before.
            intrinsic!(_mm512_storeu_si512(words.as_mut_ptr().add(done).cast(), packed));
            done += k.0[i].count_ones() as usize;
        }
    }
    #[inline(always)]
    fn gather_life(self, life: &Life<'_>, slot: V<G, W>) -> V<G, W> {
        let bytes = life.all();
        self.map(
            slot,
            #[inline(always)]
            |slot| {
                let index = self.reduced(slot, life.mask());
                // The instruction loads four bytes at the address of a byte, of which the first one
                // is the lifetime. Every index is at most the column's mask, and SLACK more bytes
                // follow in `bytes`.
                let words = intrinsic!(_mm512_i32gather_epi32::<1>(index, bytes.as_ptr().cast()));
                intrinsic!(_mm512_srai_epi32::<24>(_mm512_slli_epi32::<24>(words)))
            },
        )
    }
    #[inline(always)]
    fn set_life(self, life: &mut Life<'_>, slot: V<G, W>, value: i8, k: Mask<W>) {
        let mask = life.mask();
        let bytes = life.padded();
        for i in 0..W {
            // This loop has no branch: a lane that is not live writes to the pad. A bit scan over
            // the mask was slower.
            for s in self.padded(slot.0[i], mask, k.0[i]) {
                // SAFETY: the index is at most 16 above the column's mask, and SLACK bytes follow the mask.
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
                // SAFETY: the index is at most 16 above the column's mask, and SLACK bytes follow the mask.
                let byte = unsafe { bytes.get_unchecked_mut(s as usize) };
                *byte = rule[index(*byte)];
            }
        }
    }

    #[inline(always)]
    fn age(self, life: &mut [i8], by: u8, from: i8) {
        for chunk in life.chunks_exact_mut(64) {
            // `chunk` is 64 bytes, the size of the load and of the store.
            let l = intrinsic!(_mm512_loadu_si512(chunk.as_ptr().cast()));
            let k = intrinsic!(_mm512_cmpge_epi8_mask(l, _mm512_set1_epi8(from)));
            // 128 is not a signed byte, so it is subtracted in two steps of 64.
            let half = intrinsic!(_mm512_set1_epi8((by / 2) as i8));
            let rest = intrinsic!(_mm512_set1_epi8((by - by / 2) as i8));
            let aged = intrinsic!(_mm512_subs_epi8(_mm512_subs_epi8(l, half), rest));
            intrinsic!(_mm512_mask_storeu_epi8(chunk.as_mut_ptr(), k, aged));
        }
    }
    #[inline(always)]
    fn map_life(self, to: &mut [i8], life: &[i8], table: &[i8; 256]) {
        if PERMUTES_BYTES.load(Ordering::Relaxed) {
            // SAFETY: `detect` found AVX-512 VBMI.
            return unsafe { parts::map_by_permutes(to, life, table) };
        }
        // The entries of sixteen lifetimes, once in each quarter of a register.
        let mut rows = [intrinsic!(_mm512_setzero_si512()); 16];
        for (n, row) in rows.iter_mut().enumerate() {
            let bytes = &table[16 * n..16 * n + 16];
            // `bytes` has 16 bytes, the size of the load.
            let bytes = intrinsic!(_mm_loadu_si128(bytes.as_ptr().cast()));
            *row = intrinsic!(_mm512_broadcast_i32x4(bytes));
        }
        for (n, chunk) in life.chunks_exact(64).enumerate() {
            // `chunk` is 64 bytes, the size of the load.
            let l = intrinsic!(_mm512_loadu_si512(chunk.as_ptr().cast()));
            let mapped = self.entries(&rows, l);
            let to = &mut to[64 * n..64 * n + 64];
            // `to` is 64 bytes, the size of the store.
            intrinsic!(_mm512_storeu_si512(to.as_mut_ptr().cast(), mapped));
        }
    }
    #[inline(always)]
    fn count_le(self, life: &[i8], t: i8) -> usize {
        let mut n = 0;
        for chunk in life.chunks_exact(64) {
            // `chunk` is 64 bytes, the size of the load.
            let l = intrinsic!(_mm512_loadu_si512(chunk.as_ptr().cast()));
            n += intrinsic!(_mm512_cmple_epi8_mask(l, _mm512_set1_epi8(t))).count_ones() as usize;
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
}

crate::vector_operators!([const G: bool, const W: usize] V<G, W>, Avx512<G, W>, Avx512::<G, W>(()));
