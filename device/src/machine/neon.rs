//! NEON: masks are registers whose lanes are 0 or -1.
//!
//! Every aarch64 CPU for which this crate is compiled has NEON, so detection always succeeds. A
//! compression is a byte shuffle by a table of 16 orders; gathers and scatters are four scalar
//! accesses.

use super::cpu::{Cpu, Kernel, instructions, intrinsic};
use core::arch::aarch64::*;
use core::array::from_fn;

/// The NEON machine.
#[derive(Clone, Copy, Debug)]
pub struct Neon(());

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

/// The bit of each of 16 bytes within its group of eight.
static BIT: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

impl Neon {
    /// Returns the machine; every CPU of this target has it.
    pub fn detect() -> Option<Self> {
        Some(Self(()))
    }

    /// Runs a kernel on this machine.
    pub fn run<K: Kernel>(self, kernel: K) -> K::Out {
        kernel.run(self)
    }
}

// SAFETY: each method is the instruction that the comment of the trait names.
unsafe impl Cpu for Neon {
    const LANES: usize = 4;
    type R = int32x4_t;
    type K = uint32x4_t;
    type Words = [u32; 4];

    instructions! {
        splat(self, value: i32) -> int32x4_t = vdupq_n_s32(value);
        numbers(self) -> int32x4_t = vld1q_s32([0, 1, 2, 3].as_ptr());
        add(self, a: int32x4_t, b: int32x4_t) -> int32x4_t = vaddq_s32(a, b);
        sub(self, a: int32x4_t, b: int32x4_t) -> int32x4_t = vsubq_s32(a, b);
        mul(self, a: int32x4_t, b: int32x4_t) -> int32x4_t = vmulq_s32(a, b);
        and(self, a: int32x4_t, b: int32x4_t) -> int32x4_t = vandq_s32(a, b);
        or(self, a: int32x4_t, b: int32x4_t) -> int32x4_t = vorrq_s32(a, b);
        shr(self, a: int32x4_t, bits: u32) -> int32x4_t = vreinterpretq_s32_u32(vshlq_u32(
            vreinterpretq_u32_s32(a),
            vdupq_n_s32(-(bits as i32)),
        ));
        eq(self, a: int32x4_t, b: int32x4_t) -> uint32x4_t = vceqq_s32(a, b);
        is_negative(self, a: int32x4_t) -> uint32x4_t = vcltzq_s32(a);
        select(self, k: uint32x4_t, yes: int32x4_t, no: int32x4_t) -> int32x4_t =
            vbslq_s32(k, yes, no);
        both(self, a: uint32x4_t, b: uint32x4_t) -> uint32x4_t = vandq_u32(a, b);
        either(self, a: uint32x4_t, b: uint32x4_t) -> uint32x4_t = vorrq_u32(a, b);
        others(self, k: uint32x4_t) -> uint32x4_t = vmvnq_u32(k);
        bits(self, k: uint32x4_t) -> u32 =
            vaddvq_u32(vandq_u32(k, vld1q_u32([1, 2, 4, 8].as_ptr())));
        // `from`, `to` and `words` are 16 bytes, the size of the loads and of the stores, and so is an
        // entry of `PACKED`.
        load(self, from: &[i32], _live: uint32x4_t) -> int32x4_t = vld1q_s32(from[..4].as_ptr());
        store(self, to: &mut [i32], a: int32x4_t) -> () = vst1q_s32(to[..4].as_mut_ptr(), a);
        register(self, words: [u32; 4]) -> int32x4_t =
            vreinterpretq_s32_u32(vld1q_u32(words.as_ptr()));
        pack(self, to: &mut [i32], a: int32x4_t, set: u32) -> () = vst1q_s32(
            to[..4].as_mut_ptr(),
            vreinterpretq_s32_u8(vqtbl1q_u8(
                vreinterpretq_u8_s32(a),
                vld1q_u8(PACKED[set as usize].as_ptr()),
            )),
        );
    }

    #[inline(always)]
    fn words(self, a: int32x4_t) -> [u32; 4] {
        let mut words = [0; 4];
        intrinsic!(vst1q_u32(words.as_mut_ptr(), vreinterpretq_u32_s32(a)));
        words
    }
    #[inline(always)]
    fn chosen(self, life: &[i8; 64], t: i8, equal: bool) -> u64 {
        // `BIT` is 16 bytes, the size of the load.
        let (t, bit) = intrinsic!((vdupq_n_s8(t), vld1q_u8(BIT.as_ptr())));
        let mut bits = [bit; 4];
        for (bits, life) in bits.iter_mut().zip(life.as_chunks::<16>().0) {
            // `life` is 16 bytes, the size of the load.
            let l = intrinsic!(vld1q_s8(life.as_ptr()));
            let k = if equal { intrinsic!(vceqq_s8(l, t)) } else { intrinsic!(vcltq_s8(l, t)) };
            *bits = intrinsic!(vandq_u8(k, bit));
        }
        // Three additions of neighbours leave the bits of eight lifetimes in each of the low eight bytes.
        let low = intrinsic!(vpaddq_u8(bits[0], bits[1]));
        let high = intrinsic!(vpaddq_u8(bits[2], bits[3]));
        let sums = intrinsic!(vpaddq_u8(low, high));
        intrinsic!(vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums))))
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
}
