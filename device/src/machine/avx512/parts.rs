//! The parts of the operations: work on single registers, their lanes as scalars, and indices.

use super::Avx512;
use crate::machine::quarters::pairs;
use core::arch::x86_64::*;

impl<const G: bool> Avx512<G> {
    /// Returns the lanes of a register as scalars.
    #[inline(always)]
    pub(super) fn lanes(self, v: __m512i) -> [u32; 16] {
        let quarters = intrinsic!([
            _mm512_castsi512_si128(v),
            _mm512_extracti32x4_epi32::<1>(v),
            _mm512_extracti32x4_epi32::<2>(v),
            _mm512_extracti32x4_epi32::<3>(v)
        ]);
        let mut out = [0; 16];
        for (four, quarter) in out.chunks_exact_mut(4).zip(quarters) {
            let [a, b] = pairs(quarter);
            four.copy_from_slice(&[a as u32, (a >> 32) as u32, b as u32, (b >> 32) as u32]);
        }
        out
    }

    /// Returns one register with the lanes from, from + 1, …
    #[inline(always)]
    pub(super) fn count_up(self, from: i32) -> __m512i {
        let lanes =
            intrinsic!(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        intrinsic!(_mm512_add_epi32(lanes, _mm512_set1_epi32(from)))
    }

    /// Returns the indices of a register, reduced into 0..=mask.
    #[inline(always)]
    pub(super) fn reduced(self, index: __m512i, mask: u32) -> __m512i {
        intrinsic!(_mm512_and_si512(index, _mm512_set1_epi32(mask as i32)))
    }

    /// Returns indices reduced into 0..=mask for live lanes, and an index into the pad for each
    /// other lane. Each such lane has a byte of its own, because a store to one common byte would
    /// wait for the previous one.
    #[inline(always)]
    pub(super) fn padded(self, slot: __m512i, mask: u32, k: __mmask16) -> [u32; 16] {
        let pad = self.count_up(mask as i32 + 1);
        self.lanes(intrinsic!(_mm512_mask_and_epi32(pad, k, slot, _mm512_set1_epi32(mask as i32))))
    }

    /// Returns which of 64 lifetimes are < t, or = t if `equal`.
    #[inline(always)]
    pub(super) fn chosen(self, word: &[i8; 64], t: i8, equal: bool) -> u64 {
        // `word` is 64 bytes, the size of the load.
        let l = intrinsic!(_mm512_loadu_si512(word.as_ptr().cast()));
        let t = intrinsic!(_mm512_set1_epi8(t));
        if equal {
            intrinsic!(_mm512_cmpeq_epi8_mask(l, t))
        } else {
            intrinsic!(_mm512_cmplt_epi8_mask(l, t))
        }
    }

    /// Writes `first` + the numbers of the bits of a set next to each other. `to` has 64 words.
    #[inline(always)]
    pub(super) fn write_all(self, to: &mut [i32], first: i32, set: u64) {
        let mut done = 0;
        for quarter in 0..4 {
            let k = (set >> (16 * quarter)) as u16;
            let words = &mut to[done..done + 16];
            let slots = self.count_up(first + 16 * quarter);
            // `words` is 64 bytes, the size of the store.
            intrinsic!(_mm512_storeu_si512(
                words.as_mut_ptr().cast(),
                _mm512_maskz_compress_epi32(k, slots)
            ));
            done += k.count_ones() as usize;
        }
    }

    /// Returns the entries of 64 lifetimes. Each row has those of sixteen lifetimes in each quarter.
    #[inline(always)]
    pub(super) fn entries(self, rows: &[__m512i; 16], life: __m512i) -> __m512i {
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

/// Does what [`map_life`](crate::machine::cpu::Cpu::map_life) does, with two permutes for 64 lifetimes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) fn map_by_permutes(to: &mut [i8], life: &[i8], table: &[i8; 256]) {
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
