//! Detection of the vector instructions of this x86-64 CPU, for a crate without `std`: CPUID
//! reports what the CPU implements, and XGETBV what the operating system saves on a context switch.

use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

/// A bit of leaf 1, ECX.
const OSXSAVE: u32 = 1 << 27;
const POPCNT: u32 = 1 << 23;
/// A bit of extended leaf 1, ECX.
const LZCNT: u32 = 1 << 5;
/// A bit of leaf 7, EBX.
const AVX2: u32 = 1 << 5;
const BMI1: u32 = 1 << 3;
const BMI2: u32 = 1 << 8;
const AVX512_FBWVL: u32 = (1 << 16) | (1 << 30) | (1 << 31);
/// A bit of leaf 7, ECX.
const AVX512_VBMI2: u32 = 1 << 6;
/// Bits of XCR0: SSE and AVX state. AVX-512 adds the opmask registers, the upper halves, and the
/// upper registers.
const YMM: u64 = 0b110;
const ZMM: u64 = 0b1110_0110;

/// Returns XCR0, or 0 if the CPU has no XGETBV.
fn saved_state() -> u64 {
    #[target_feature(enable = "xsave")]
    fn read() -> u64 {
        // SAFETY: register 0 exists on every CPU that has XGETBV.
        unsafe { _xgetbv(0) }
    }
    if __cpuid(1).ecx & OSXSAVE == 0 {
        return 0;
    }
    // SAFETY: OSXSAVE says that the operating system has enabled XGETBV.
    unsafe { read() }
}

/// Returns leaf 7 as (EBX, ECX), or zeros if the CPU has no such leaf.
fn extended() -> (u32, u32) {
    if __cpuid(0).eax < 7 {
        return (0, 0);
    }
    let leaf = __cpuid_count(7, 0);
    (leaf.ebx, leaf.ecx)
}

/// Returns whether the CPU has POPCNT and LZCNT. They have leaves of their own, and AVX2 does not
/// imply them.
fn counts_bits() -> bool {
    const EXTENDED: u32 = 0x8000_0000;
    __cpuid(1).ecx & POPCNT != 0
        && __cpuid(EXTENDED).eax > EXTENDED
        && __cpuid(EXTENDED + 1).ecx & LZCNT != 0
}

/// Returns whether AVX2, BMI1, BMI2, POPCNT and LZCNT can be used.
pub fn has_avx2() -> bool {
    let need = AVX2 | BMI1 | BMI2;
    extended().0 & need == need && counts_bits() && saved_state() & YMM == YMM
}

/// Returns whether AVX-512 F, BW, VL and VBMI2 can be used with all that [`has_avx2`] requires.
pub fn has_avx512() -> bool {
    let (ebx, ecx) = extended();
    has_avx2()
        && ebx & AVX512_FBWVL == AVX512_FBWVL
        && ecx & AVX512_VBMI2 != 0
        && saved_state() & ZMM == ZMM
}
