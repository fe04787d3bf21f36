//! The parts of the operations: work on single registers, their lanes as scalars, and indices.

use super::Avx2;
use crate::machine::quarters::pairs;
use core::arch::x86_64::*;

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
    /// Returns one register with the lanes from, from + 1, …
    #[inline(always)]
    pub(super) fn count_up(self, from: i32) -> __m256i {
        let lanes = intrinsic!(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        intrinsic!(_mm256_add_epi32(lanes, _mm256_set1_epi32(from)))
    }

    /// Returns the lanes of a register as scalars.
    #[inline(always)]
    pub(super) fn lanes(self, v: __m256i) -> [u32; 8] {
        let (low, high) = intrinsic!((_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v)));
        let all = [pairs(low), pairs(high)];
        let mut out = [0; 8];
        for (two, pair) in out.chunks_exact_mut(2).zip(all.as_flattened()) {
            two.copy_from_slice(&[*pair as u32, (pair >> 32) as u32]);
        }
        out
    }

    /// Returns the indices of a register, reduced into 0..=mask.
    #[inline(always)]
    pub(super) fn reduced(self, index: __m256i, mask: u32) -> __m256i {
        intrinsic!(_mm256_and_si256(index, _mm256_set1_epi32(mask as i32)))
    }

    /// Returns indices reduced into 0..=mask for live lanes, and an index into the pad for each
    /// other lane. Each such lane has a byte of its own, because a store to one common byte would
    /// wait for the previous one.
    #[inline(always)]
    pub(super) fn padded(self, slot: __m256i, mask: u32, k: __m256i) -> [u32; 8] {
        let pad = self.count_up(mask as i32 + 1);
        self.lanes(self.blend(k, self.reduced(slot, mask), pad))
    }

    /// Returns `yes` in the lanes whose sign bit is set in `k`, and `no` in the others.
    #[inline(always)]
    pub(super) fn blend(self, k: __m256i, yes: __m256i, no: __m256i) -> __m256i {
        intrinsic!(_mm256_castps_si256(_mm256_blendv_ps(
            _mm256_castsi256_ps(no),
            _mm256_castsi256_ps(yes),
            _mm256_castsi256_ps(k)
        )))
    }

    /// Returns one bit per lane of a mask's register.
    #[inline(always)]
    pub(super) fn bits(self, k: __m256i) -> u8 {
        intrinsic!(_mm256_movemask_ps(_mm256_castsi256_ps(k))) as u8
    }

    /// Stores the lanes of `set` next to each other at `at`; it writes eight words there.
    #[inline(always)]
    pub(super) fn pack(self, to: &mut [i32], at: usize, v: __m256i, set: u8) {
        let order = PACKED[set as usize].cast_signed();
        let order = intrinsic!(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(order)));
        let words = &mut to[at..at + 8];
        // `words` is 32 bytes, the size of the store.
        intrinsic!(_mm256_storeu_si256(
            words.as_mut_ptr().cast(),
            _mm256_permutevar8x32_epi32(v, order)
        ));
    }

    /// Returns which of 64 lifetimes are < t, or = t if `equal`.
    #[inline(always)]
    pub(super) fn chosen(self, word: &[i8; 64], t: i8, equal: bool) -> u64 {
        let t = intrinsic!(_mm256_set1_epi8(t));
        // `word` is 64 bytes, the size of both loads together.
        let (a, b) = intrinsic!((
            _mm256_loadu_si256(word.as_ptr().cast()),
            _mm256_loadu_si256(word.as_ptr().add(32).cast())
        ));
        let (a, b) = if equal {
            intrinsic!((_mm256_cmpeq_epi8(a, t), _mm256_cmpeq_epi8(b, t)))
        } else {
            intrinsic!((_mm256_cmpgt_epi8(t, a), _mm256_cmpgt_epi8(t, b)))
        };
        let (a, b) = intrinsic!((_mm256_movemask_epi8(a), _mm256_movemask_epi8(b)));
        u64::from(a as u32) | u64::from(b as u32) << 32
    }

    /// Writes `first` + the numbers of the bits of a set next to each other. `to` has 64 words.
    #[inline(always)]
    pub(super) fn write_all(self, to: &mut [i32], first: i32, set: u64) {
        let mut done = 0;
        for eighth in 0..8 {
            let set = (set >> (8 * eighth)) as u8;
            self.pack(to, done, self.count_up(first + 8 * eighth), set);
            done += set.count_ones() as usize;
        }
    }

    /// Returns eight words as a register.
    #[inline(always)]
    pub(super) fn gathered(self, w: [i32; 8]) -> __m256i {
        intrinsic!(_mm256_setr_epi32(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]))
    }

    /// Returns the entries of 32 lifetimes. Each row has those of sixteen lifetimes in each half.
    #[inline(always)]
    pub(super) fn entries(self, rows: &[__m256i; 16], life: __m256i) -> __m256i {
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
