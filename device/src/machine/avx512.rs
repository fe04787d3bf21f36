//! AVX-512: a vector is four registers of sixteen lanes, and masks are k-registers.
//!
//! A gather has two forms, because the faster one depends on the CPU: `vpgatherdd`, and sixteen
//! scalar loads (the parameter of [`Avx512`]). The host measures both when it starts. Where a CPU has VBMI,
//! learned lifetimes are mapped to values by it.

use super::cpu::{Column, Cpu, Kernel, Life, Scalar};
use super::operators::{mask_operators, vector_operators};
use super::sparse::append_chosen;
use super::x86::{Mask, REGISTERS, V, lane_operations, register_operators};
use core::arch::x86_64::*;
use core::arch::x86_64::{
    _mm512_add_epi32 as add, _mm512_and_si512 as and, _mm512_loadu_si512 as load,
    _mm512_madd_epi16 as multiply_add, _mm512_mullo_epi32 as mul, _mm512_or_si512 as or,
    _mm512_set1_epi32 as set1, _mm512_sll_epi32 as shl, _mm512_srl_epi32 as shr,
    _mm512_storeu_si512 as store, _mm512_sub_epi32 as sub, _mm512_xor_si512 as xor,
};
use core::sync::atomic::{AtomicBool, Ordering};

/// The AVX-512 machine of `16 * REGISTERS` lanes. With `GATHER`, it gathers by
/// `vpgatherdd`.
#[derive(Clone, Copy, Debug)]
pub struct Avx512<const GATHER: bool>(());

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

mask_operators!(
    [] Mask<__mmask16>,
    |a, b| a.zip(b, #[inline(always)] |a, b| a & b),
    a.zip(b, #[inline(always)] |a, b| a | b),
    a.zip(a, #[inline(always)] |a, _| !a)
);

register_operators!(V<__m512i, G>, Avx512::<G>(()));

impl<const G: bool> Avx512<G> {
    /// Returns the machine if the CPU and the operating system support AVX-512 F, BW and VL.
    pub fn detect() -> Option<Self> {
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
        fn avsg_kernel_avx512<const G: bool, K: Kernel>(m: Avx512<G>, kernel: K) -> K::Out {
            kernel.run(m)
        }
        // tests/kernels/codegen.rs finds the machine code by this name.
        intrinsic!(avsg_kernel_avx512(self, kernel))
    }
}

impl<const G: bool> Cpu for Avx512<G> {
    const LANES: usize = 16 * REGISTERS;
    type V = V<__m512i, G>;
    type K = Mask<__mmask16>;

    lane_operations!(512);

    #[inline(always)]
    fn first_lanes(self, n: usize) -> Self::K {
        let all = if n >= 64 { !0 } else { (1u64 << n) - 1 };
        let mut k = Mask([0; REGISTERS]);
        for i in 0..REGISTERS {
            k.0[i] = (all >> (16 * i)) as u16;
        }
        k
    }
    #[inline(always)]
    fn count(self, k: Self::K) -> usize {
        k.0.iter().map(|k| k.count_ones() as usize).sum()
    }
    #[inline(always)]
    fn select(self, k: Self::K, mut yes: Self::V, no: Self::V) -> Self::V {
        for i in 0..REGISTERS {
            yes.0[i] = intrinsic!(_mm512_mask_blend_epi32(k.0[i], no.0[i], yes.0[i]));
        }
        yes
    }
    #[inline(always)]
    fn eq(self, a: Self::V, b: Self::V) -> Self::K {
        let mut k = Mask([0; REGISTERS]);
        for i in 0..REGISTERS {
            k.0[i] = intrinsic!(_mm512_cmpeq_epi32_mask(a.0[i], b.0[i]));
        }
        k
    }
    #[inline(always)]
    fn is_negative(self, v: Self::V) -> Self::K {
        let mut k = Mask([0; REGISTERS]);
        for i in 0..REGISTERS {
            k.0[i] = intrinsic!(_mm512_cmplt_epi32_mask(v.0[i], _mm512_setzero_si512()));
        }
        k
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
    fn scatter(self, column: &mut Column<'_>, index: Self::V, v: Self::V, k: Self::K) {
        let mask = column.mask;
        let words = column.data.as_mut_ptr();
        for i in 0..REGISTERS {
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
    fn compress(self, to: &mut [i32], at: usize, v: Self::V, k: Self::K) {
        let words = &mut to[at..at + 16 * REGISTERS];
        let mut done = 0;
        for i in 0..REGISTERS {
            let packed = intrinsic!(_mm512_maskz_compress_epi32(k.0[i], v.0[i]));
            // `words` is REGISTERS times 64 bytes, and `done` at most 16 lanes for each register before.
            intrinsic!(_mm512_storeu_si512(words.as_mut_ptr().add(done).cast(), packed));
            done += k.0[i].count_ones() as usize;
        }
    }
    #[inline(always)]
    fn gather_life(self, life: &Life<'_>, slot: Self::V) -> Self::V {
        let bytes = &*life.data;
        slot.map(
            #[inline(always)]
            |slot| {
                let index = self.reduced(slot, life.mask);
                // The instruction loads four bytes at the address of a byte, of which the first one
                // is the lifetime. Every index is at most the column's mask, and SLACK more bytes
                // follow in `bytes`.
                let words = intrinsic!(_mm512_i32gather_epi32::<1>(index, bytes.as_ptr().cast()));
                intrinsic!(_mm512_srai_epi32::<24>(_mm512_slli_epi32::<24>(words)))
            },
        )
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
}
