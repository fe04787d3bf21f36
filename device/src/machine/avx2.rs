//! AVX2: masks are registers, of which only the sign bit of each lane is significant.
//!
//! So a sign test costs nothing, a selection is one blend, and only a compression or a scatter moves the bits
//! to a scalar register. AVX2 has no compression instruction: a table of 256 permutations, 2 KB, replaces it.
//!
//! A gather has two forms, because the faster one depends on the CPU: `vpgatherdd`, and eight scalar
//! loads (the parameter of [`Avx2`]). The host measures both when it starts.

use super::cpu::{Column, Cpu, Kernel, gather_by_loads, instructions, intrinsic, reduced};
use super::x86;
use core::arch::x86_64::*;

/// The AVX2 machine. With `GATHER`, it gathers by `vpgatherdd`.
#[derive(Clone, Copy, Debug)]
pub struct Avx2<const GATHER: bool>(());

/// The permutation for each set of eight lanes: the numbers of its lanes, one per byte, the lowest
/// first.
static PACKED: [u64; 256] = {
    let mut table = [0; 256];
    let mut set = 0;
    while set < 256 {
        let (mut lane, mut n) = (0, 0);
        while lane < 8 {
            if set >> lane & 1 == 1 {
                table[set] |= lane << (8 * n);
                n += 1;
            }
            lane += 1;
        }
        set += 1;
    }
    table
};

impl<const G: bool> Avx2<G> {
    /// Returns the machine if the CPU and the operating system support AVX2, BMI, POPCNT and LZCNT.
    pub fn detect() -> Option<Self> {
        x86::has_avx2().then_some(Self(()))
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

    /// Returns the entries of 32 lifetimes. Each row has those of sixteen lifetimes in each half.
    #[inline(always)]
    fn entries(self, rows: &[__m256i; 16], life: __m256i) -> __m256i {
        let at = intrinsic!(_mm256_xor_si256(life, _mm256_set1_epi8(i8::MIN)));
        // The low four bits choose an entry of a row. Each higher bit, moved to the sign of its byte, then
        // halves the rows.
        let low = intrinsic!(_mm256_and_si256(at, _mm256_set1_epi8(15)));
        let bits = intrinsic!([
            _mm256_slli_epi16::<3>(at),
            _mm256_slli_epi16::<2>(at),
            _mm256_slli_epi16::<1>(at),
            at
        ]);
        let mut left = *rows;
        for row in &mut left {
            *row = intrinsic!(_mm256_shuffle_epi8(*row, low));
        }
        for (halved, bit) in bits.into_iter().enumerate() {
            for n in 0..8 >> halved {
                left[n] = intrinsic!(_mm256_blendv_epi8(left[2 * n], left[2 * n + 1], bit));
            }
        }
        left[0]
    }
}

// SAFETY: each method is the instruction that the comment of the trait names.
unsafe impl<const G: bool> Cpu for Avx2<G> {
    const LANES: usize = 8;
    type R = __m256i;
    type K = __m256i;
    type Words = [u32; 8];

    instructions! {
        splat(self, value: i32) -> __m256i = _mm256_set1_epi32(value);
        numbers(self) -> __m256i = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        add(self, a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi32(a, b);
        sub(self, a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi32(a, b);
        mul(self, a: __m256i, b: __m256i) -> __m256i = _mm256_mullo_epi32(a, b);
        and(self, a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256(a, b);
        or(self, a: __m256i, b: __m256i) -> __m256i = _mm256_or_si256(a, b);
        shl(self, a: __m256i, bits: u32) -> __m256i =
            _mm256_sll_epi32(a, _mm_cvtsi32_si128(bits as i32));
        shr(self, a: __m256i, bits: u32) -> __m256i =
            _mm256_srl_epi32(a, _mm_cvtsi32_si128(bits as i32));
        // Both factors are below 2^15, so as signed 16-bit halves the high ones are zero.
        mul_scalar(self, a: __m256i, s: i32) -> __m256i = _mm256_madd_epi16(a, _mm256_set1_epi32(s));
        // The low half with its highest bit flipped is, as a signed number, x mod 2^16 - 2^15.
        madd(self, x: __m256i, p: i32, q: i32) -> __m256i = _mm256_madd_epi16(
            _mm256_xor_si256(
                _mm256_and_si256(x, _mm256_set1_epi32(0xFF_FFFF)),
                _mm256_set1_epi32(0x8000),
            ),
            _mm256_set1_epi32(p | q << 16),
        );
        eq(self, a: __m256i, b: __m256i) -> __m256i = _mm256_cmpeq_epi32(a, b);
        select(self, k: __m256i, yes: __m256i, no: __m256i) -> __m256i =
            _mm256_castps_si256(_mm256_blendv_ps(
                _mm256_castsi256_ps(no),
                _mm256_castsi256_ps(yes),
                _mm256_castsi256_ps(k),
            ));
        both(self, a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256(a, b);
        either(self, a: __m256i, b: __m256i) -> __m256i = _mm256_or_si256(a, b);
        others(self, k: __m256i) -> __m256i = _mm256_xor_si256(k, _mm256_set1_epi32(-1));
        bits(self, k: __m256i) -> u32 = _mm256_movemask_ps(_mm256_castsi256_ps(k)) as u32;
        // `from` and `to` are 32 bytes, the size of the load and of the store.
        load(self, from: &[i32], _live: __m256i) -> __m256i =
            _mm256_loadu_si256(from[..8].as_ptr().cast());
        store(self, to: &mut [i32], a: __m256i) -> () =
            _mm256_storeu_si256(to[..8].as_mut_ptr().cast(), a);
        pack(self, to: &mut [i32], a: __m256i, set: u32) -> () = _mm256_storeu_si256(
            to[..8].as_mut_ptr().cast(),
            _mm256_permutevar8x32_epi32(
                a,
                _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(PACKED[set as usize].cast_signed())),
            ),
        );
    }

    #[inline(always)]
    fn is_negative(self, a: __m256i) -> __m256i {
        a
    }
    #[inline(always)]
    fn words(self, a: __m256i) -> [u32; 8] {
        let (low, high) = intrinsic!((_mm256_castsi256_si128(a), _mm256_extracti128_si256::<1>(a)));
        let mut words = [0; 8];
        words[..4].copy_from_slice(&x86::words(low));
        words[4..].copy_from_slice(&x86::words(high));
        words
    }
    #[inline(always)]
    fn register(self, words: [u32; 8]) -> __m256i {
        let w = words.map(u32::cast_signed);
        intrinsic!(_mm256_setr_epi32(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]))
    }
    #[inline(always)]
    fn chosen(self, life: &[i8; 64], t: i8, equal: bool) -> u64 {
        let t = intrinsic!(_mm256_set1_epi8(t));
        // `life` is 64 bytes, the size of both loads together.
        let (a, b) = intrinsic!((
            _mm256_loadu_si256(life.as_ptr().cast()),
            _mm256_loadu_si256(life.as_ptr().add(32).cast())
        ));
        let (a, b) = if equal {
            intrinsic!((_mm256_cmpeq_epi8(a, t), _mm256_cmpeq_epi8(b, t)))
        } else {
            intrinsic!((_mm256_cmpgt_epi8(t, a), _mm256_cmpgt_epi8(t, b)))
        };
        let (a, b) = intrinsic!((_mm256_movemask_epi8(a), _mm256_movemask_epi8(b)));
        u64::from(a as u32) | u64::from(b as u32) << 32
    }
    #[inline(always)]
    fn gather(self, column: &Column<'_>, index: __m256i) -> __m256i {
        if !G {
            return gather_by_loads(self, column, index);
        }
        let index = reduced(self, index, column.mask);
        // Every index is at most the column's mask, which is below its length.
        intrinsic!(_mm256_i32gather_epi32::<4>(column.data.as_ptr(), index))
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
        for (n, life) in life.chunks_exact(32).enumerate() {
            let to = &mut to[32 * n..32 * n + 32];
            // `life` and `to` are 32 bytes, the size of the load and of the store.
            let l = intrinsic!(_mm256_loadu_si256(life.as_ptr().cast()));
            let mapped = self.entries(&rows, l);
            intrinsic!(_mm256_storeu_si256(to.as_mut_ptr().cast(), mapped));
        }
    }
}
