//! Which vector instructions this x86-64 has, for a crate without `std`: CPUID says what the CPU
//! can do, XGETBV what the operating system saves on a context switch.

use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

const OSXSAVE: u32 = 1 << 27;
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

/// AVX2 with BMI1 and BMI2, usable.
pub fn has_avx2() -> bool {
    let need = AVX2 | BMI1 | BMI2;
    extended().0 & need == need && saved_state() & YMM == YMM
}

/// AVX-512 F, BW, VL and VBMI2 with BMI, usable.
pub fn has_avx512() -> bool {
    let need = AVX2 | BMI1 | BMI2 | AVX512_FBWVL;
    let (ebx, ecx) = extended();
    ebx & need == need && ecx & AVX512_VBMI2 != 0 && saved_state() & ZMM == ZMM
}
