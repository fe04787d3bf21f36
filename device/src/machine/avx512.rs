//! AVX-512: sixteen lanes in a register, masks in k-registers.
//!
//! Gathers come in two forms, because the better one depends on the CPU: `vpgatherdd`, and sixteen
//! scalar loads ([`Avx512`]'s parameter). The host measures both at start-up.

use super::Kernel;
use super::cpu::{Column, Cpu, Life};
use core::arch::x86_64::*;
use core::ops::{BitAnd, BitOr, Not};

/// The AVX-512 machine; with `GATHER`, it gathers by `vpgatherdd`.
#[derive(Clone, Copy, Debug)]
pub struct Avx512<const GATHER: bool>(());

/// One register of lanes.
#[derive(Clone, Copy)]
pub struct V<const G: bool>(__m512i);

/// A k-register.
#[derive(Clone, Copy)]
pub struct Mask(__mmask16);

impl BitAnd for Mask {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, o: Self) -> Self {
        Self(self.0 & o.0)
    }
}
impl BitOr for Mask {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, o: Self) -> Self {
        Self(self.0 | o.0)
    }
}
impl Not for Mask {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Self(!self.0)
    }
}

/// One intrinsic, or a short run of them, in a function that holds the token.
macro_rules! shell {
    ($e:expr) => {
        // SAFETY: `self` is a token that `detect` made after it had seen AVX-512 F, BW and VL, so
        // the instructions exist. What an access needs beyond that is checked where it stands.
        unsafe { $e }
    };
}

impl<const G: bool> Avx512<G> {
    /// The machine, if this CPU and its operating system have AVX-512 F, BW, VL and VBMI2.
    pub fn detect() -> Option<Self> {
        super::cpuid::has_avx512().then_some(Self(()))
    }

    /// Runs a kernel with the machine's instructions enabled.
    pub fn run<K: Kernel>(self, kernel: K) -> K::Out {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi1,bmi2,popcnt,lzcnt")]
        fn enabled<const G: bool, K: Kernel>(m: Avx512<G>, kernel: K) -> K::Out {
            kernel.run(m)
        }
        shell!(enabled(self, kernel))
    }

    /// The lanes as scalars. By 64-bit halves of each quarter: left alone, the compiler extracts
    /// lane by lane, which is twice the work for the shuffle port.
    #[inline(always)]
    fn lanes(self, v: __m512i) -> [u32; 16] {
        let quarters = shell!([
            _mm512_castsi512_si128(v),
            _mm512_extracti32x4_epi32::<1>(v),
            _mm512_extracti32x4_epi32::<2>(v),
            _mm512_extracti32x4_epi32::<3>(v)
        ]);
        let mut out = [0; 16];
        for (four, q) in out.chunks_exact_mut(4).zip(quarters) {
            let (a, b) = shell!((_mm_cvtsi128_si64(q) as u64, _mm_extract_epi64::<1>(q) as u64));
            four.copy_from_slice(&[a as u32, (a >> 32) as u32, b as u32, (b >> 32) as u32]);
        }
        out
    }

    /// 0, 1, … 63.
    #[inline(always)]
    fn byte_iota(self) -> __m512i {
        const LANES: [u8; 64] = {
            let mut lanes = [0; 64];
            let mut i = 0;
            while i < 64 {
                lanes[i] = i as u8;
                i += 1;
            }
            lanes
        };
        // `LANES` is 64 bytes, the size of the load.
        shell!(_mm512_loadu_si512(LANES.as_ptr().cast()))
    }

    /// Indices reduced into 0..=mask, as scalars.
    #[inline(always)]
    fn indices(self, index: V<G>, mask: u32) -> [u32; 16] {
        self.lanes(shell!(_mm512_and_si512(index.0, _mm512_set1_epi32(mask as i32))))
    }

    /// Indices of live lanes reduced into 0..=mask; those of dead lanes go to the pad.
    #[inline(always)]
    fn padded(self, slot: V<G>, mask: u32, k: Mask) -> [u32; 16] {
        self.lanes(shell!(_mm512_mask_and_epi32(
            _mm512_set1_epi32(mask as i32 + 1),
            k.0,
            slot.0,
            _mm512_set1_epi32(mask as i32)
        )))
    }
}

impl<const G: bool> Cpu for Avx512<G> {
    const LANES: usize = 16;
    type V = V<G>;
    type K = Mask;

    #[inline(always)]
    fn first(self, n: usize) -> Mask {
        Mask(((1u32 << n.min(16)) - 1) as u16)
    }
    #[inline(always)]
    fn count(self, k: Mask) -> usize {
        k.0.count_ones() as usize
    }
    #[inline(always)]
    fn splat(self, value: i32) -> V<G> {
        V(shell!(_mm512_set1_epi32(value)))
    }
    #[inline(always)]
    fn iota(self, from: i32) -> V<G> {
        let lanes = shell!(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        V(shell!(_mm512_add_epi32(lanes, _mm512_set1_epi32(from))))
    }
    #[inline(always)]
    fn add(self, a: V<G>, b: V<G>) -> V<G> {
        V(shell!(_mm512_add_epi32(a.0, b.0)))
    }
    #[inline(always)]
    fn sub(self, a: V<G>, b: V<G>) -> V<G> {
        V(shell!(_mm512_sub_epi32(a.0, b.0)))
    }
    #[inline(always)]
    fn mul(self, a: V<G>, b: V<G>) -> V<G> {
        V(shell!(_mm512_mullo_epi32(a.0, b.0)))
    }
    #[inline(always)]
    fn and(self, a: V<G>, b: V<G>) -> V<G> {
        V(shell!(_mm512_and_si512(a.0, b.0)))
    }
    #[inline(always)]
    fn or(self, a: V<G>, b: V<G>) -> V<G> {
        V(shell!(_mm512_or_si512(a.0, b.0)))
    }
    #[inline(always)]
    fn shr(self, v: V<G>, bits: u32) -> V<G> {
        V(shell!(_mm512_srl_epi32(v.0, _mm_cvtsi32_si128(bits as i32))))
    }
    #[inline(always)]
    fn select(self, k: Mask, yes: V<G>, no: V<G>) -> V<G> {
        V(shell!(_mm512_mask_blend_epi32(k.0, no.0, yes.0)))
    }
    #[inline(always)]
    fn eq(self, a: V<G>, b: V<G>) -> Mask {
        Mask(shell!(_mm512_cmpeq_epi32_mask(a.0, b.0)))
    }
    #[inline(always)]
    fn neg(self, v: V<G>) -> Mask {
        Mask(shell!(_mm512_cmplt_epi32_mask(v.0, _mm512_setzero_si512())))
    }
    #[inline(always)]
    fn load(self, from: &[i32], at: usize, _: Mask) -> V<G> {
        let words = &from[at..at + 16];
        // `words` is 64 bytes, the size of the load.
        V(shell!(_mm512_loadu_si512(words.as_ptr().cast())))
    }
    #[inline(always)]
    fn store(self, to: &mut [i32], at: usize, v: V<G>, _: Mask) {
        let words = &mut to[at..at + 16];
        // `words` is 64 bytes, the size of the store.
        shell!(_mm512_storeu_si512(words.as_mut_ptr().cast(), v.0));
    }
    #[inline(always)]
    fn gather(self, column: &Column<'_>, index: V<G>) -> V<G> {
        let words = column.words();
        if G {
            let index = self.and(index, Cpu::splat(self, column.mask() as i32));
            // Every index is at most the column's mask, which is below its length. Two halves: one
            // 512-bit gather takes a tenth longer here.
            let (at, low) = (words.as_ptr(), shell!(_mm512_castsi512_si256(index.0)));
            let high = shell!(_mm512_extracti64x4_epi64::<1>(index.0));
            let low = shell!(_mm256_i32gather_epi32::<4>(at, low));
            let high = shell!(_mm256_i32gather_epi32::<4>(at, high));
            return V(shell!(_mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)));
        }
        let mut out = [0i32; 16];
        for (o, i) in out.iter_mut().zip(self.indices(index, column.mask())) {
            // SAFETY: `indices` reduced it to at most the column's mask, which `Column::new` made
            // smaller than its length.
            *o = unsafe { *words.get_unchecked(i as usize) };
        }
        // Through memory: sixteen inserts into a register cost more than the stalled reload.
        Cpu::load(self, core::hint::black_box(&out), 0, self.first(16))
    }
    #[inline(always)]
    fn scatter(self, column: &mut Column<'_>, index: V<G>, v: V<G>, k: Mask) {
        let index = self.and(index, Cpu::splat(self, column.mask() as i32));
        let words = column.words_mut().as_mut_ptr();
        // Every index is at most the column's mask, which is below its length. The instruction
        // writes conflicting lanes in lane order.
        shell!(_mm512_mask_i32scatter_epi32::<4>(words, k.0, index.0, v.0));
    }
    #[inline(always)]
    fn compress(self, to: &mut [i32], at: usize, v: V<G>, k: Mask) {
        let packed = V(shell!(_mm512_maskz_compress_epi32(k.0, v.0)));
        Cpu::store(self, to, at, packed, k);
    }
    #[inline(always)]
    fn life_at(self, life: &Life<'_>, slot: V<G>) -> V<G> {
        let index = self.and(slot, Cpu::splat(self, life.mask() as i32));
        // Four bytes at a byte's address, of which the first counts. Every index is at most S - 1,
        // and SLACK more bytes follow the S lifetimes.
        let words = shell!(_mm512_i32gather_epi32::<1>(index.0, life.slots().as_ptr().cast()));
        V(shell!(_mm512_srai_epi32::<24>(_mm512_slli_epi32::<24>(words))))
    }
    #[inline(always)]
    fn set_life(self, life: &mut Life<'_>, slot: V<G>, value: i8, k: Mask) {
        let i = self.padded(slot, life.mask(), k);
        let bytes = life.padded();
        // No branch: a dead lane writes the pad. A bit scan over the mask was slower.
        for s in i {
            // SAFETY: at most S, and the column is S + SLACK bytes long.
            unsafe { *bytes.get_unchecked_mut(s as usize) = value };
        }
    }
    #[inline(always)]
    fn step_life(self, life: &mut Life<'_>, slot: V<G>, rule: &[i8; 256], k: Mask) {
        let i = self.padded(slot, life.mask(), k);
        let bytes = life.padded();
        for s in i {
            // SAFETY: at most S, and the column is S + SLACK bytes long.
            let byte = unsafe { bytes.get_unchecked_mut(s as usize) };
            *byte = rule[*byte as u8 as usize];
        }
    }

    #[inline(always)]
    fn age(self, life: &mut [i8], by: u8, settle: bool) {
        for chunk in life.chunks_exact_mut(64) {
            // `chunk` is 64 bytes, the size of the load and of the store.
            let l = shell!(_mm512_loadu_si512(chunk.as_ptr().cast()));
            let top = shell!(_mm512_set1_epi8(if settle { i8::MIN } else { 0 }));
            let settled = shell!(_mm512_or_si512(l, top));
            // 128 does not fit a signed byte: it is two steps of 64.
            let half = shell!(_mm512_set1_epi8((by / 2) as i8));
            let rest = shell!(_mm512_set1_epi8((by - by / 2) as i8));
            let aged = shell!(_mm512_subs_epi8(_mm512_subs_epi8(settled, half), rest));
            shell!(_mm512_storeu_si512(chunk.as_mut_ptr().cast(), aged));
        }
    }
    #[inline(always)]
    fn count_le(self, life: &[i8], t: i8) -> usize {
        let mut n = 0;
        for chunk in life.chunks_exact(64) {
            // `chunk` is 64 bytes, the size of the load.
            let l = shell!(_mm512_loadu_si512(chunk.as_ptr().cast()));
            n += shell!(_mm512_cmple_epi8_mask(l, _mm512_set1_epi8(t))).count_ones() as usize;
        }
        n
    }
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
        for (c, chunk) in life.chunks_exact(64).enumerate() {
            if len >= limit {
                return limit;
            }
            // `chunk` is 64 bytes, the size of the load.
            let l = shell!(_mm512_loadu_si512(chunk.as_ptr().cast()));
            let t = shell!(_mm512_set1_epi8(t));
            let k = if equal {
                shell!(_mm512_cmpeq_epi8_mask(l, t))
            } else {
                shell!(_mm512_cmplt_epi8_mask(l, t))
            };
            // Victims are sparse: one byte compress and one widening per chunk, nearly always.
            let lanes = shell!(_mm512_maskz_compress_epi8(k, self.byte_iota()));
            let base = shell!(_mm512_set1_epi32((64 * c) as i32));
            let count = k.count_ones() as usize;
            let mut done = 0;
            let mut rest = lanes;
            loop {
                let sixteen = shell!(_mm512_cvtepu8_epi32(_mm512_castsi512_si128(rest)));
                let slots = V(shell!(_mm512_add_epi32(sixteen, base)));
                Cpu::store(self, to, len + done, slots, self.first(16));
                done += 16;
                if done >= count {
                    break;
                }
                rest = shell!(_mm512_alignr_epi32::<4>(rest, rest));
            }
            len += count;
        }
        len.min(limit)
    }
}

crate::vector_operators!([const G: bool] V<G>, Avx512<G>, Avx512::<G>(()));
