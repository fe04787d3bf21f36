//! NEON: a register has four lanes, and masks are registers whose lanes are 0 or -1.
//!
//! Every aarch64 CPU for which this crate is compiled has NEON, so detection always succeeds. A
//! compression is a byte shuffle by a table of 16 orders; gathers and scatters are four scalar
//! accesses.

use super::cpu::{Column, Cpu, Kernel, Life, Scalar};
use super::operators::{mask_operators, vector_operators};
use core::arch::aarch64::*;
use core::array::from_fn;

/// The NEON machine.
#[derive(Clone, Copy, Debug)]
pub struct Neon(());

/// One register of lanes.
#[derive(Clone, Copy)]
pub struct V(int32x4_t);

/// A mask: one register, in which a lane is all ones or all zeros.
#[derive(Clone, Copy)]
pub struct Mask(uint32x4_t);

/// Calls one intrinsic, or a short sequence of them.
macro_rules! intrinsic {
    ($e:expr) => {
        // SAFETY: this module is compiled only for targets that have NEON, so the instructions
        // exist. An access to memory is justified by the comment at its place.
        unsafe { $e }
    };
}

mask_operators!(
    [] Mask,
    |a, b| Self(intrinsic!(vandq_u32(a.0, b.0))),
    Self(intrinsic!(vorrq_u32(a.0, b.0))),
    Self(intrinsic!(vmvnq_u32(a.0)))
);

vector_operators!(
    [] V, Neon(()),
    |a, b|
    Add add Self(intrinsic!(vaddq_s32(a.0, b.0)));
    Sub sub Self(intrinsic!(vsubq_s32(a.0, b.0)));
    Mul mul Self(intrinsic!(vmulq_s32(a.0, b.0)));
    BitAnd bitand Self(intrinsic!(vandq_s32(a.0, b.0)));
    BitOr bitor Self(intrinsic!(vorrq_s32(a.0, b.0)));
);

/// The byte shuffle for each set of four lanes: the bytes of its lanes, the lowest first.
static PACKED: [[u8; 16]; 16] = {
    let mut table = [[0; 16]; 16];
    let mut set = 0;
    while set < 16 {
        let (mut byte, mut n) = (0u8, 0);
        while byte < 16 {
            if set >> (byte / 4) & 1 == 1 {
                table[set][n] = byte;
                n += 1;
            }
            byte += 1;
        }
        set += 1;
    }
    table
};

/// The bit of each of 16 lanes within its group of four.
static BIT: [u8; 16] = [1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8];

impl Neon {
    /// Returns the machine; every CPU of this target has it.
    pub fn detect() -> Option<Self> {
        Some(Self(()))
    }

    /// Runs a kernel on this machine.
    pub fn run<K: Kernel>(self, kernel: K) -> K::Out {
        kernel.run(self)
    }

    /// Returns the lanes of a register as scalars.
    #[inline(always)]
    fn lanes(self, v: V) -> [u32; 4] {
        let mut out = [0u32; 4];
        // `out` is 16 bytes, the size of the store.
        intrinsic!(vst1q_u32(out.as_mut_ptr(), vreinterpretq_u32_s32(v.0)));
        out
    }

    /// Returns indices reduced into 0..=mask, as scalars.
    #[inline(always)]
    fn indices(self, index: V, mask: u32) -> [u32; 4] {
        self.lanes(index & mask as i32)
    }

    /// Returns indices reduced into 0..=mask for live lanes, and an index into the pad for each
    /// other lane. Each such lane has a byte of its own, because a store to one common byte would
    /// wait for the previous one.
    #[inline(always)]
    fn padded(self, slot: V, mask: u32, k: Mask) -> [u32; 4] {
        self.lanes(self.select(k, slot & mask as i32, Cpu::iota(self, mask as i32 + 1)))
    }

    /// Returns a mask with one bit per lane.
    #[inline(always)]
    fn bits(self, k: Mask) -> u8 {
        const LANE: [u32; 4] = [1, 2, 4, 8];
        // `LANE` is 16 bytes, the size of the load.
        intrinsic!(vaddvq_u32(vandq_u32(k.0, vld1q_u32(LANE.as_ptr())))) as u8
    }

    /// Stores the lanes of `set`, which is below 16, next to each other at `at`.
    #[inline(always)]
    fn pack(self, to: &mut [i32], at: usize, v: V, set: u8) {
        // An entry of `PACKED` is 16 bytes, the size of the load.
        let order = intrinsic!(vld1q_u8(PACKED[set as usize].as_ptr()));
        let packed = intrinsic!(vqtbl1q_u8(vreinterpretq_u8_s32(v.0), order));
        let all = self.first_lanes(4);
        Cpu::store(self, to, at, V(intrinsic!(vreinterpretq_s32_u8(packed))), all);
    }

    /// Returns four words as a register.
    #[inline(always)]
    fn gathered(self, words: [i32; 4]) -> V {
        // `words` is 16 bytes, the size of the load.
        V(intrinsic!(vld1q_s32(words.as_ptr())))
    }
}

impl Cpu for Neon {
    const LANES: usize = 4;
    type V = V;
    type K = Mask;

    #[inline(always)]
    fn first_lanes(self, n: usize) -> Mask {
        let lane = Cpu::iota(self, 0);
        Mask(intrinsic!(vcltq_s32(lane.0, vdupq_n_s32(n.min(4) as i32))))
    }
    #[inline(always)]
    fn count(self, k: Mask) -> usize {
        intrinsic!(vaddvq_u32(vshrq_n_u32::<31>(k.0))) as usize
    }
    #[inline(always)]
    fn splat(self, value: i32) -> V {
        V(intrinsic!(vdupq_n_s32(value)))
    }
    #[inline(always)]
    fn iota(self, from: i32) -> V {
        let lanes = self.gathered([0, 1, 2, 3]);
        V(intrinsic!(vaddq_s32(lanes.0, vdupq_n_s32(from))))
    }
    #[inline(always)]
    fn shr(self, v: V, bits: u32) -> V {
        let by = intrinsic!(vdupq_n_s32(-(bits as i32)));
        V(intrinsic!(vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(v.0), by))))
    }
    #[inline(always)]
    fn select(self, k: Mask, yes: V, no: V) -> V {
        V(intrinsic!(vbslq_s32(k.0, yes.0, no.0)))
    }
    #[inline(always)]
    fn eq(self, a: V, b: V) -> Mask {
        Mask(intrinsic!(vceqq_s32(a.0, b.0)))
    }
    #[inline(always)]
    fn is_negative(self, v: V) -> Mask {
        Mask(intrinsic!(vcltzq_s32(v.0)))
    }
    #[inline(always)]
    fn load(self, from: &[i32], at: usize, _: Mask) -> V {
        let words = &from[at..at + 4];
        // `words` is 16 bytes, the size of the load.
        V(intrinsic!(vld1q_s32(words.as_ptr())))
    }
    #[inline(always)]
    fn store(self, to: &mut [i32], at: usize, v: V, _: Mask) {
        let words = &mut to[at..at + 4];
        // `words` is 16 bytes, the size of the store.
        intrinsic!(vst1q_s32(words.as_mut_ptr(), v.0));
    }
    #[inline(always)]
    fn gather(self, column: &Column<'_>, index: V) -> V {
        let (words, i) = (&*column.data, self.indices(index, column.mask));
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
        let (i, v, set) = (self.indices(index, column.mask), self.lanes(v), self.bits(k));
        let words = &mut *column.data;
        // This loop has no branch: a lane that is not set writes back the word that it reads.
        for n in 0..4 {
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
        let (bytes, i) = (&*life.data, self.indices(slot, life.mask));
        self.gathered(from_fn(
            #[inline(always)]
            |n| {
                // SAFETY: `indices` reduced the index to at most the column's mask, and SLACK more
                // bytes follow.
                i32::from(unsafe { *bytes.get_unchecked(i[n] as usize) })
            },
        ))
    }
    #[inline(always)]
    fn change_life(self, life: &mut Life<'_>, slot: V, k: Mask, rule: impl Fn(i8) -> i8) {
        let i = self.padded(slot, life.mask, k);
        let bytes = &mut *life.data;
        for s in i {
            // SAFETY: the index is at most 4 above the column's mask, and SLACK bytes follow the mask.
            let byte = unsafe { bytes.get_unchecked_mut(s as usize) };
            *byte = rule(*byte);
        }
    }

    #[inline(always)]
    fn age(self, life: &mut [i8], by: u8, from: i8) {
        let from = intrinsic!(vdupq_n_s8(from));
        // 128 is not a signed byte, so it is subtracted in two steps of 64.
        let half = intrinsic!(vdupq_n_s8((by / 2) as i8));
        let rest = intrinsic!(vdupq_n_s8((by - by / 2) as i8));
        for chunk in life.chunks_exact_mut(16) {
            // `chunk` is 16 bytes, the size of the load and of the store.
            let l = intrinsic!(vld1q_s8(chunk.as_ptr()));
            let aged = intrinsic!(vqsubq_s8(vqsubq_s8(l, half), rest));
            let aged = intrinsic!(vbslq_s8(vcgeq_s8(l, from), aged, l));
            intrinsic!(vst1q_s8(chunk.as_mut_ptr(), aged));
        }
    }
    #[inline(always)]
    fn map_life(self, to: &mut [i8], life: &[i8], table: &[i8; 256]) {
        // An index past the 64 bytes of four registers leaves the byte as it is.
        let rows: [int8x16x4_t; 4] = from_fn(
            #[inline(always)]
            |n| {
                let bytes = &table[64 * n..64 * n + 64];
                // `bytes` has 64 bytes, the size of the four loads.
                intrinsic!(vld1q_s8_x4(bytes.as_ptr()))
            },
        );
        for (to, chunk) in to.chunks_exact_mut(16).zip(life.chunks_exact(16)) {
            // `chunk` is 16 bytes, the size of the load.
            let l = intrinsic!(vreinterpretq_u8_s8(vld1q_s8(chunk.as_ptr())));
            let mut at = intrinsic!(veorq_u8(l, vdupq_n_u8(0x80)));
            let mut mapped = intrinsic!(vqtbl4q_s8(rows[0], at));
            for &row in &rows[1..] {
                at = intrinsic!(vsubq_u8(at, vdupq_n_u8(64)));
                mapped = intrinsic!(vqtbx4q_s8(mapped, row, at));
            }
            // `to` is 16 bytes, the size of the store.
            intrinsic!(vst1q_s8(to.as_mut_ptr(), mapped));
        }
    }
    #[inline(always)]
    fn count_le(self, life: &[i8], t: i8) -> usize {
        let t = intrinsic!(vdupq_n_s8(t));
        let mut n = 0;
        // The counters are bytes, so a block has 255 registers at most.
        for block in life.chunks(255 * 16) {
            let mut counts = intrinsic!(vdupq_n_u8(0));
            for chunk in block.chunks_exact(16) {
                // `chunk` is 16 bytes, the size of the load. A set lane is -1, so subtracting it
                // counts it.
                let le = intrinsic!(vcleq_s8(vld1q_s8(chunk.as_ptr()), t));
                counts = intrinsic!(vsubq_u8(counts, le));
            }
            n += intrinsic!(vaddlvq_u8(counts)) as usize;
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
        let t = intrinsic!(vdupq_n_s8(t));
        // `BIT` is 16 bytes, the size of the load.
        let bit = intrinsic!(vld1q_u8(BIT.as_ptr()));
        for (c, chunk) in life.chunks_exact(16).enumerate() {
            if len >= limit {
                return limit;
            }
            // `chunk` is 16 bytes, the size of the load.
            let l = intrinsic!(vld1q_s8(chunk.as_ptr()));
            let k = if equal { intrinsic!(vceqq_s8(l, t)) } else { intrinsic!(vcltq_s8(l, t)) };
            // Two additions of neighbours leave the sets of four lanes each in the low four bytes.
            let pairs = intrinsic!(vandq_u8(k, bit));
            let sets = intrinsic!(vpaddq_u8(pairs, pairs));
            let sets = intrinsic!(vgetq_lane_u32::<0>(vreinterpretq_u32_u8(vpaddq_u8(sets, sets))));
            if sets == 0 {
                continue;
            }
            for (quarter, set) in sets.to_le_bytes().into_iter().enumerate() {
                let slots = Cpu::iota(self, (16 * c + 4 * quarter) as i32);
                self.pack(to, len, slots, set);
                len += set.count_ones() as usize;
            }
        }
        len.min(limit)
    }
}
