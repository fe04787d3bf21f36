//! Which vector instructions this x86-64 has, for a crate without `std`: CPUID says what the CPU
//! can do, XGETBV what the operating system saves on a context switch.

use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

/// Leaf 1, ECX.
const OSXSAVE: u32 = 1 << 27;
const POPCNT: u32 = 1 << 23;
/// Extended leaf 1, ECX.
const LZCNT: u32 = 1 << 5;
/// Leaf 7, EBX.
const AVX2: u32 = 1 << 5;
const BMI1: u32 = 1 << 3;
const BMI2: u32 = 1 << 8;
const AVX512_FBWVL: u32 = (1 << 16) | (1 << 30) | (1 << 31);
/// Leaf 7, ECX.
const AVX512_VBMI2: u32 = 1 << 6;
/// XCR0: SSE and AVX state; with AVX-512: opmask, upper halves, upper registers.
const YMM: u64 = 0b110;
const ZMM: u64 = 0b1110_0110;

/// XCR0, or 0 where XGETBV does not exist.
fn saved_state() -> u64 {
    #[target_feature(enable = "xsave")]
    fn read() -> u64 {
        // SAFETY: register 0 exists wherever XGETBV does.
        unsafe { _xgetbv(0) }
    }
    if __cpuid(1).ecx & OSXSAVE == 0 {
        return 0;
    }
    // SAFETY: OSXSAVE says that the operating system has enabled XGETBV.
    unsafe { read() }
}

/// Leaf 7 as (EBX, ECX), zero where there is none.
fn extended() -> (u32, u32) {
    if __cpuid(0).eax < 7 {
        return (0, 0);
    }
    let leaf = __cpuid_count(7, 0);
    (leaf.ebx, leaf.ecx)
}

/// Both bit counts: leaves of their own, whatever the vector instructions say.
fn counts_bits() -> bool {
    const EXTENDED: u32 = 0x8000_0000;
    __cpuid(1).ecx & POPCNT != 0
        && __cpuid(EXTENDED).eax > EXTENDED
        && __cpuid(EXTENDED + 1).ecx & LZCNT != 0
}

/// AVX2 with BMI1, BMI2, POPCNT and LZCNT, usable.
pub fn has_avx2() -> bool {
    let need = AVX2 | BMI1 | BMI2;
    extended().0 & need == need && counts_bits() && saved_state() & YMM == YMM
}

/// AVX-512 F, BW, VL and VBMI2 with what [`has_avx2`] asks for, usable.
pub fn has_avx512() -> bool {
    let (ebx, ecx) = extended();
    has_avx2()
        && ebx & AVX512_FBWVL == AVX512_FBWVL
        && ecx & AVX512_VBMI2 != 0
        && saved_state() & ZMM == ZMM
}
