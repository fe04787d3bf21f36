//! AVX2: a register has eight lanes, and masks are registers too.
//!
//! Only the sign bit of each lane of a mask is significant. So a sign test costs nothing, a
//! selection is one blend, and only a compression or a scatter moves the bits to a scalar register.
//! AVX2 has no compression instruction: a table of 256 permutations, 2 KB, replaces it. A gather is
//! eight scalar loads; `vpgatherdd` is no faster on any CPU that has AVX2 but not AVX-512.

use super::cpu::{Column, Cpu, Kernel, Life, index};
use core::arch::x86_64::*;
use core::array::from_fn;
use core::ops::{BitAnd, BitOr, Not};

/// The AVX2 machine.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

/// One register of lanes.
#[derive(Clone, Copy)]
pub struct V(__m256i);

/// A mask: one register, in which a lane is set if its sign bit is set.
#[derive(Clone, Copy)]
pub struct Mask(__m256i);

/// Calls one intrinsic, or a short sequence of them, in a function that holds the token.
macro_rules! intrinsic {
    ($e:expr) => {
        // SAFETY: `self`, or a register of this machine, exists only because `detect` has found
        // AVX2, BMI, POPCNT and LZCNT, so the instructions exist. An access to memory is justified
        // by the comment at its place.
        unsafe { $e }
    };
}

impl BitAnd for Mask {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, o: Self) -> Self {
        Self(intrinsic!(_mm256_and_si256(self.0, o.0)))
    }
}
impl BitOr for Mask {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, o: Self) -> Self {
        Self(intrinsic!(_mm256_or_si256(self.0, o.0)))
    }
}
impl Not for Mask {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Self(intrinsic!(_mm256_xor_si256(self.0, _mm256_set1_epi32(-1))))
    }
}

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

impl Avx2 {
    /// Returns the machine if the CPU and the operating system support AVX2, BMI, POPCNT and LZCNT.
    pub fn detect() -> Option<Self> {
        super::cpuid::has_avx2().then_some(Self(()))
    }

    /// Runs a kernel, compiled with the instructions of this machine.
    pub fn run<K: Kernel>(self, kernel: K) -> K::Out {
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
        fn enabled<K: Kernel>(m: Avx2, kernel: K) -> K::Out {
            kernel.run(m)
        }
        intrinsic!(enabled(self, kernel))
    }

    /// Returns the lanes of a register as scalars. It extracts 64-bit halves: without that, the
    /// compiler extracts lane by lane, which is twice the work for the shuffle port.
    #[inline(always)]
    fn lanes(self, v: __m256i) -> [u32; 8] {
        let pairs = intrinsic!([
            _mm256_extract_epi64::<0>(v),
            _mm256_extract_epi64::<1>(v),
            _mm256_extract_epi64::<2>(v),
            _mm256_extract_epi64::<3>(v)
        ]);
        from_fn(
            #[inline(always)]
            |n| (pairs[n / 2].cast_unsigned() >> (32 * (n % 2))) as u32,
        )
    }

    /// Returns indices reduced into 0..=mask, as scalars.
    #[inline(always)]
    fn indices(self, index: V, mask: u32) -> [u32; 8] {
        self.lanes(self.and(index, Cpu::splat(self, mask as i32)).0)
    }

    /// Returns indices reduced into 0..=mask for live lanes, and an index into the pad for each
    /// other lane. Each such lane has a byte of its own, because a store to one common byte would
    /// wait for the previous one.
    #[inline(always)]
    fn padded(self, slot: V, mask: u32, k: Mask) -> [u32; 8] {
        let index = self.and(slot, Cpu::splat(self, mask as i32));
        self.lanes(self.select(k, index, Cpu::iota(self, mask as i32 + 1)).0)
    }

    /// Returns a mask with one bit per lane.
    #[inline(always)]
    fn bits(self, k: Mask) -> u8 {
        intrinsic!(_mm256_movemask_ps(_mm256_castsi256_ps(k.0))) as u8
    }

    /// Stores the lanes of `set` next to each other at `at`.
    #[inline(always)]
    fn pack(self, to: &mut [i32], at: usize, v: V, set: u8) {
        let order = PACKED[set as usize].cast_signed();
        let order = intrinsic!(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(order)));
        let packed = V(intrinsic!(_mm256_permutevar8x32_epi32(v.0, order)));
        Cpu::store(self, to, at, packed, Mask(v.0));
    }

    /// Returns eight words as a register.
    #[inline(always)]
    fn gathered(self, w: [i32; 8]) -> V {
        V(intrinsic!(_mm256_setr_epi32(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7])))
    }
}

impl Cpu for Avx2 {
    const LANES: usize = 8;
    type V = V;
    type K = Mask;

    #[inline(always)]
    fn first_lanes(self, n: usize) -> Mask {
        let below = Cpu::iota(self, 0);
        Mask(intrinsic!(_mm256_cmpgt_epi32(_mm256_set1_epi32(n.min(8) as i32), below.0)))
    }
    #[inline(always)]
    fn count(self, k: Mask) -> usize {
        self.bits(k).count_ones() as usize
    }
    #[inline(always)]
    fn splat(self, value: i32) -> V {
        V(intrinsic!(_mm256_set1_epi32(value)))
    }
    #[inline(always)]
    fn iota(self, from: i32) -> V {
        let lanes = intrinsic!(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        V(intrinsic!(_mm256_add_epi32(lanes, _mm256_set1_epi32(from))))
    }
    #[inline(always)]
    fn add(self, a: V, b: V) -> V {
        V(intrinsic!(_mm256_add_epi32(a.0, b.0)))
    }
    #[inline(always)]
    fn sub(self, a: V, b: V) -> V {
        V(intrinsic!(_mm256_sub_epi32(a.0, b.0)))
    }
    #[inline(always)]
    fn mul(self, a: V, b: V) -> V {
        V(intrinsic!(_mm256_mullo_epi32(a.0, b.0)))
    }
    #[inline(always)]
    fn and(self, a: V, b: V) -> V {
        V(intrinsic!(_mm256_and_si256(a.0, b.0)))
    }
    #[inline(always)]
    fn or(self, a: V, b: V) -> V {
        V(intrinsic!(_mm256_or_si256(a.0, b.0)))
    }
    #[inline(always)]
    fn shl(self, v: V, bits: u32) -> V {
        V(intrinsic!(_mm256_sll_epi32(v.0, _mm_cvtsi32_si128(bits as i32))))
    }
    #[inline(always)]
    fn mul_scalar(self, v: V, s: i32) -> V {
        // Both factors are below 2^15, so as signed 16-bit halves the high ones are zero.
        V(intrinsic!(_mm256_madd_epi16(v.0, _mm256_set1_epi32(s))))
    }
    #[inline(always)]
    fn madd(self, x: V, p: i32, q: i32) -> V {
        // The low half with its highest bit flipped is, as a signed number, x mod 2^16 - 2^15.
        let kept = self.and(x, Cpu::splat(self, 0x3F_FFFF));
        let flipped = intrinsic!(_mm256_xor_si256(kept.0, _mm256_set1_epi32(0x8000)));
        V(intrinsic!(_mm256_madd_epi16(flipped, _mm256_set1_epi32(p | q << 16))))
    }
    #[inline(always)]
    fn shr(self, v: V, bits: u32) -> V {
        V(intrinsic!(_mm256_srl_epi32(v.0, _mm_cvtsi32_si128(bits as i32))))
    }
    #[inline(always)]
    fn select(self, k: Mask, yes: V, no: V) -> V {
        V(intrinsic!(_mm256_castps_si256(_mm256_blendv_ps(
            _mm256_castsi256_ps(no.0),
            _mm256_castsi256_ps(yes.0),
            _mm256_castsi256_ps(k.0)
        ))))
    }
    #[inline(always)]
    fn eq(self, a: V, b: V) -> Mask {
        Mask(intrinsic!(_mm256_cmpeq_epi32(a.0, b.0)))
    }
    #[inline(always)]
    fn is_negative(self, v: V) -> Mask {
        Mask(v.0)
    }
    #[inline(always)]
    fn load(self, from: &[i32], at: usize, _: Mask) -> V {
        let words = &from[at..at + 8];
        // `words` is 32 bytes, the size of the load.
        V(intrinsic!(_mm256_loadu_si256(words.as_ptr().cast())))
    }
    #[inline(always)]
    fn store(self, to: &mut [i32], at: usize, v: V, _: Mask) {
        let words = &mut to[at..at + 8];
        // `words` is 32 bytes, the size of the store.
        intrinsic!(_mm256_storeu_si256(words.as_mut_ptr().cast(), v.0));
    }
    #[inline(always)]
    fn gather(self, column: &Column<'_>, index: V) -> V {
        let (words, i) = (column.words(), self.indices(index, column.mask()));
        self.gathered(from_fn(
            #[inline(always)]
            |n| {
                // SAFETY: `indices` reduced the index to at most the column's mask, which
                // `Column::new` made smaller than the length of the column.
                unsafe { *words.get_unchecked(i[n] as usize) }
            },
        ))
    }
    #[inline(always)]
    fn scatter(self, column: &mut Column<'_>, index: V, v: V, k: Mask) {
        let (i, v, set) = (self.indices(index, column.mask()), self.lanes(v.0), self.bits(k));
        let words = column.words_mut();
        // This loop has no branch: a lane that is not set writes back the word that it reads.
        for n in 0..8 {
            // SAFETY: `indices` reduced the index to at most the column's mask, which `Column::new`
            // made smaller than the length of the column.
            let word = unsafe { words.get_unchecked_mut(i[n] as usize) };
            *word = if set >> n & 1 == 1 { v[n] as i32 } else { *word };
        }
    }
    #[inline(always)]
    fn compress(self, to: &mut [i32], at: usize, v: V, k: Mask) {
        self.pack(to, at, v, self.bits(k));
    }
    #[inline(always)]
    fn gather_life(self, life: &Life<'_>, slot: V) -> V {
        let (slots, i) = (life.slots(), self.indices(slot, life.mask()));
        self.gathered(from_fn(
            #[inline(always)]
            |n| {
                // SAFETY: `indices` reduced the index to at most S - 1, the last index of `slots`.
                i32::from(unsafe { *slots.get_unchecked(i[n] as usize) })
            },
        ))
    }
    #[inline(always)]
    fn set_life(self, life: &mut Life<'_>, slot: V, value: i8, k: Mask) {
        let i = self.padded(slot, life.mask(), k);
        let bytes = life.padded();
        for s in i {
            // SAFETY: the index is at most S + 7, and the column is S + SLACK bytes long.
            unsafe { *bytes.get_unchecked_mut(s as usize) = value };
        }
    }
    #[inline(always)]
    fn step_life(self, life: &mut Life<'_>, slot: V, rule: &[i8; 256], k: Mask) {
        let i = self.padded(slot, life.mask(), k);
        let bytes = life.padded();
        for s in i {
            // SAFETY: the index is at most S + 7, and the column is S + SLACK bytes long.
            let byte = unsafe { bytes.get_unchecked_mut(s as usize) };
            *byte = rule[index(*byte)];
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
        let rows: [__m256i; 16] = from_fn(
            #[inline(always)]
            |row| {
                let row = &table[16 * row..16 * row + 16];
                // `row` is 16 bytes, the size of the load.
                intrinsic!(_mm256_broadcastsi128_si256(_mm_loadu_si128(row.as_ptr().cast())))
            },
        );
        for (to, chunk) in to.chunks_exact_mut(32).zip(life.chunks_exact(32)) {
            // `chunk` is 32 bytes, the size of the load.
            let l = intrinsic!(_mm256_loadu_si256(chunk.as_ptr().cast()));
            let at = intrinsic!(_mm256_xor_si256(l, _mm256_set1_epi8(i8::MIN)));
            // The low four bits choose an entry of a row. Each higher bit, moved to the sign of its
            // byte, then halves the rows.
            let low = intrinsic!(_mm256_and_si256(at, _mm256_set1_epi8(15)));
            let bit = intrinsic!([
                _mm256_slli_epi16::<3>(at),
                _mm256_slli_epi16::<2>(at),
                _mm256_slli_epi16::<1>(at),
                at
            ]);
            let mut left = rows.map(
                #[inline(always)]
                |row| intrinsic!(_mm256_shuffle_epi8(row, low)),
            );
            for (halved, &bit) in bit.iter().enumerate() {
                for n in 0..8 >> halved {
                    left[n] = intrinsic!(_mm256_blendv_epi8(left[2 * n], left[2 * n + 1], bit));
                }
            }
            // `to` is 32 bytes, the size of the store.
            intrinsic!(_mm256_storeu_si256(to.as_mut_ptr().cast(), left[0]));
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
        mut len: usize,
        life: &[i8],
        t: i8,
        equal: bool,
        limit: usize,
    ) -> usize {
        let t = intrinsic!(_mm256_set1_epi8(t));
        for (c, chunk) in life.chunks_exact(32).enumerate() {
            if len >= limit {
                return limit;
            }
            // `chunk` is 32 bytes, the size of the load.
            let l = intrinsic!(_mm256_loadu_si256(chunk.as_ptr().cast()));
            let k = if equal {
                intrinsic!(_mm256_cmpeq_epi8(l, t))
            } else {
                intrinsic!(_mm256_cmpgt_epi8(t, l))
            };
            let k = intrinsic!(_mm256_movemask_epi8(k)) as u32;
            if k == 0 {
                continue;
            }
            for (quarter, set) in k.to_le_bytes().into_iter().enumerate() {
                let slots = Cpu::iota(self, (32 * c + 8 * quarter) as i32);
                self.pack(to, len, slots, set);
                len += set.count_ones() as usize;
            }
        }
        len.min(limit)
    }
}

crate::vector_operators!([] V, Avx2, Avx2(()));
