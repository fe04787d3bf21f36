//! AVX-512: masks are k-registers.
//!
//! A gather has two forms, because the faster one depends on the CPU: `vpgatherdd`, and sixteen
//! scalar loads (the parameter of [`Avx512`]). The host measures both when it starts. Where a CPU has VBMI,
//! learned lifetimes are mapped to values by it.

use super::cpu::{Column, Cpu, Kernel, Life, gather_by_loads, instructions, intrinsic, reduced};
use super::x86;
use core::arch::x86_64::*;
use core::sync::atomic::{AtomicBool, Ordering};

/// The AVX-512 machine. With `GATHER`, it gathers by `vpgatherdd`.
#[derive(Clone, Copy, Debug)]
pub struct Avx512<const GATHER: bool>(());

/// Whether the CPU has AVX-512 VBMI too, which looks 64 bytes up in a table of 128. `detect` writes it.
static PERMUTES_BYTES: AtomicBool = AtomicBool::new(false);

impl<const G: bool> Avx512<G> {
    /// Returns the machine if the CPU and the operating system support AVX-512 F, BW and VL.
    pub fn detect() -> Option<Self> {
        x86::has_avx512().then(|| {
            PERMUTES_BYTES.store(x86::has_avx512_vbmi(), Ordering::Relaxed);
            Self(())
        })
    }

    /// Returns the names of what the CPU or the operating system lacks for this machine.
    pub fn missing() -> impl Iterator<Item = &'static str> {
        x86::missing()
    }

    /// Runs a kernel, compiled with the instructions of this machine.
    pub fn run<K: Kernel>(self, kernel: K) -> K::Out {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt,lzcnt")]
        fn avsg_kernel_avx512<const G: bool, K: Kernel>(m: Avx512<G>, kernel: K) -> K::Out {
            kernel.run(m)
        }
        // tests/kernels/codegen.rs finds the machine code by this name.
        intrinsic!(avsg_kernel_avx512(self, kernel))
    }

    /// Returns the entries of 64 lifetimes. Each row has those of sixteen lifetimes in each quarter.
    #[inline(always)]
    fn entries(self, rows: &[__m512i; 16], life: __m512i) -> __m512i {
        let at = intrinsic!(_mm512_xor_si512(life, _mm512_set1_epi8(i8::MIN)));
        // The low four bits choose an entry of a row. Each higher bit then halves the rows.
        let low = intrinsic!(_mm512_and_si512(at, _mm512_set1_epi8(15)));
        let bit =
            |bit: u8| intrinsic!(_mm512_test_epi8_mask(at, _mm512_set1_epi8((1u8 << bit) as i8)));
        let (fourth, others) = (bit(4), [bit(5), bit(6), bit(7)]);
        let mut left = [life; 8];
        for (n, left) in left.iter_mut().enumerate() {
            let even = intrinsic!(_mm512_shuffle_epi8(rows[2 * n], low));
            *left = intrinsic!(_mm512_mask_shuffle_epi8(even, fourth, rows[2 * n + 1], low));
        }
        for (halved, k) in others.into_iter().enumerate() {
            for n in 0..4 >> halved {
                left[n] = intrinsic!(_mm512_mask_blend_epi8(k, left[2 * n], left[2 * n + 1]));
            }
        }
        left[0]
    }
}

// SAFETY: each method is the instruction that the comment of the trait names.
unsafe impl<const G: bool> Cpu for Avx512<G> {
    const LANES: usize = 16;
    type R = __m512i;
    type K = __mmask16;
    type Words = [u32; 16];

    instructions! {
        splat(self, value: i32) -> __m512i = _mm512_set1_epi32(value);
        numbers(self) -> __m512i =
            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        add(self, a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi32(a, b);
        sub(self, a: __m512i, b: __m512i) -> __m512i = _mm512_sub_epi32(a, b);
        mul(self, a: __m512i, b: __m512i) -> __m512i = _mm512_mullo_epi32(a, b);
        and(self, a: __m512i, b: __m512i) -> __m512i = _mm512_and_si512(a, b);
        or(self, a: __m512i, b: __m512i) -> __m512i = _mm512_or_si512(a, b);
        shl(self, a: __m512i, bits: u32) -> __m512i =
            _mm512_sll_epi32(a, _mm_cvtsi32_si128(bits as i32));
        shr(self, a: __m512i, bits: u32) -> __m512i =
            _mm512_srl_epi32(a, _mm_cvtsi32_si128(bits as i32));
        // Both factors are below 2^15, so as signed 16-bit halves the high ones are zero.
        mul_scalar(self, a: __m512i, s: i32) -> __m512i = _mm512_madd_epi16(a, _mm512_set1_epi32(s));
        // The low half with its highest bit flipped is, as a signed number, x mod 2^16 - 2^15.
        madd(self, x: __m512i, p: i32, q: i32) -> __m512i = _mm512_madd_epi16(
            _mm512_xor_si512(
                _mm512_and_si512(x, _mm512_set1_epi32(0xFF_FFFF)),
                _mm512_set1_epi32(0x8000),
            ),
            _mm512_set1_epi32(p | q << 16),
        );
        eq(self, a: __m512i, b: __m512i) -> __mmask16 = _mm512_cmpeq_epi32_mask(a, b);
        is_negative(self, a: __m512i) -> __mmask16 =
            _mm512_cmplt_epi32_mask(a, _mm512_setzero_si512());
        select(self, k: __mmask16, yes: __m512i, no: __m512i) -> __m512i =
            _mm512_mask_blend_epi32(k, no, yes);
        // `from` and `to` are 64 bytes, the size of the load and of the store.
        load(self, from: &[i32], _live: __mmask16) -> __m512i =
            _mm512_loadu_si512(from[..16].as_ptr().cast());
        store(self, to: &mut [i32], a: __m512i) -> () =
            _mm512_storeu_si512(to[..16].as_mut_ptr().cast(), a);
        pack(self, to: &mut [i32], a: __m512i, set: u32) -> () = _mm512_storeu_si512(
            to[..16].as_mut_ptr().cast(),
            _mm512_maskz_compress_epi32(set as u16, a),
        );
    }

    #[inline(always)]
    fn both(self, a: __mmask16, b: __mmask16) -> __mmask16 {
        a & b
    }
    #[inline(always)]
    fn either(self, a: __mmask16, b: __mmask16) -> __mmask16 {
        a | b
    }
    #[inline(always)]
    fn others(self, k: __mmask16) -> __mmask16 {
        !k
    }
    #[inline(always)]
    fn bits(self, k: __mmask16) -> u32 {
        k.into()
    }
    #[inline(always)]
    fn words(self, a: __m512i) -> [u32; 16] {
        let quarters = intrinsic!([
            _mm512_castsi512_si128(a),
            _mm512_extracti32x4_epi32::<1>(a),
            _mm512_extracti32x4_epi32::<2>(a),
            _mm512_extracti32x4_epi32::<3>(a)
        ]);
        let mut words = [0; 16];
        for (four, quarter) in words.chunks_exact_mut(4).zip(quarters) {
            four.copy_from_slice(&x86::words(quarter));
        }
        words
    }
    /// The words go through memory, because sixteen inserts into a register cost more than the stalled
    /// reload.
    #[inline(always)]
    fn register(self, words: [u32; 16]) -> __m512i {
        // `words` is 64 bytes, the size of the load.
        intrinsic!(_mm512_loadu_si512(core::hint::black_box(&words).as_ptr().cast()))
    }
    #[inline(always)]
    fn chosen(self, life: &[i8; 64], t: i8, equal: bool) -> u64 {
        // `life` is 64 bytes, the size of the load.
        let l = intrinsic!(_mm512_loadu_si512(life.as_ptr().cast()));
        let t = intrinsic!(_mm512_set1_epi8(t));
        if equal {
            intrinsic!(_mm512_cmpeq_epi8_mask(l, t))
        } else {
            intrinsic!(_mm512_cmplt_epi8_mask(l, t))
        }
    }
    #[inline(always)]
    fn gather(self, column: &Column<'_>, index: __m512i) -> __m512i {
        if !G {
            return gather_by_loads(self, column, index);
        }
        let index = reduced(self, index, column.mask);
        // Every index is at most the column's mask, which is below its length.
        intrinsic!(_mm512_i32gather_epi32::<4>(index, column.data.as_ptr()))
    }
    #[inline(always)]
    fn scatter(self, column: &mut Column<'_>, index: __m512i, a: __m512i, k: __mmask16) {
        // An instruction with an empty mask takes as long as another one, and the last registers of a
        // short list have such masks.
        if k == 0 {
            return;
        }
        let (words, index) = (column.data.as_mut_ptr(), reduced(self, index, column.mask));
        // Every index is at most the column's mask, which is below its length. The instruction writes
        // conflicting lanes in lane order.
        intrinsic!(_mm512_mask_i32scatter_epi32::<4>(words, k, index, a));
    }
    #[inline(always)]
    fn gather_life(self, life: &Life<'_>, slot: __m512i) -> __m512i {
        let index = reduced(self, slot, life.mask);
        // The instruction loads four bytes at the address of a byte, of which the first one is the
        // lifetime. Every index is at most the column's mask, and SLACK more bytes follow.
        let words = intrinsic!(_mm512_i32gather_epi32::<1>(index, life.data.as_ptr().cast()));
        intrinsic!(_mm512_srai_epi32::<24>(_mm512_slli_epi32::<24>(words)))
    }
    #[inline(always)]
    fn map_life(self, to: &mut [i8], life: &[i8], table: &[i8; 256]) {
        if PERMUTES_BYTES.load(Ordering::Relaxed) {
            // SAFETY: `detect` found AVX-512 VBMI.
            return unsafe { map_by_permutes(to, life, table) };
        }
        // The entries of sixteen lifetimes, once in each quarter of a register.
        let mut rows = [intrinsic!(_mm512_setzero_si512()); 16];
        for (n, row) in rows.iter_mut().enumerate() {
            let bytes = &table[16 * n..16 * n + 16];
            // `bytes` has 16 bytes, the size of the load.
            let bytes = intrinsic!(_mm_loadu_si128(bytes.as_ptr().cast()));
            *row = intrinsic!(_mm512_broadcast_i32x4(bytes));
        }
        for (n, life) in life.chunks_exact(64).enumerate() {
            let to = &mut to[64 * n..64 * n + 64];
            // `life` and `to` are 64 bytes, the size of the load and of the store.
            let l = intrinsic!(_mm512_loadu_si512(life.as_ptr().cast()));
            let mapped = self.entries(&rows, l);
            intrinsic!(_mm512_storeu_si512(to.as_mut_ptr().cast(), mapped));
        }
    }
}

/// Does what [`map_life`](Cpu::map_life) does, with two permutes for 64 lifetimes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn map_by_permutes(to: &mut [i8], life: &[i8], table: &[i8; 256]) {
    // SAFETY: each quarter of the table is 64 bytes, the size of the load.
    let [a, b, c, d] = [0, 1, 2, 3]
        .map(|quarter| unsafe { _mm512_loadu_si512(table[64 * quarter..].as_ptr().cast()) });
    for (from, to) in life.chunks_exact(64).zip(to.chunks_exact_mut(64)) {
        // SAFETY: `from` is 64 bytes, the size of the load.
        let life = unsafe { _mm512_loadu_si512(from.as_ptr().cast()) };
        // A permute reads the low seven bits of a lifetime. The table begins with negative lifetimes.
        let negative = _mm512_permutex2var_epi8(a, life, b);
        let others = _mm512_permutex2var_epi8(c, life, d);
        let mapped = _mm512_mask_blend_epi8(_mm512_movepi8_mask(life), others, negative);
        // SAFETY: `to` is 64 bytes, the size of the store.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), mapped) };
    }
}

#[cfg(test)]
mod tests {
    use crate::machine::avx512::{Avx512, PERMUTES_BYTES};
    use crate::machine::cpu::{Cpu, Kernel, index};
    use core::sync::atomic::Ordering::Relaxed;

    struct MapLife<'a>(&'a [i8], &'a [i8; 256]);

    impl Kernel for MapLife<'_> {
        type Out = [i8; 256];
        fn run<C: Cpu>(self, m: C) -> [i8; 256] {
            let mut to = [0; 256];
            m.map_life(&mut to, self.0, self.1);
            to
        }
    }

    #[test]
    fn every_lifetime_is_mapped_with_byte_permutes_and_without_them() {
        let Some(m) = Avx512::<false>::detect() else { return };
        let life: [i8; 256] = core::array::from_fn(|n| (n * 37) as i8);
        let table: [i8; 256] = core::array::from_fn(|n| (n * 91 + 5) as i8);
        let right = life.map(|life| table[index(life)]);
        let found = PERMUTES_BYTES.load(Relaxed);
        // Other tests give the same results with either value.
        for permutes in [false, found] {
            PERMUTES_BYTES.store(permutes, Relaxed);
            assert_eq!(m.run(MapLife(&life, &table)), right, "byte permutes: {permutes}");
        }
    }
}
