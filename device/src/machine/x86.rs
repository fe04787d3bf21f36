//! What the x86-64 machines share: the detection of their instructions, and the words of a register.
//!
//! For a crate without `std`, CPUID reports what the CPU implements, and XGETBV what the operating system saves
//! on a context switch.

#[cfg(target_feature = "sse")]
use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count, __m128i, _xgetbv};

/// What the vector machines need, in the order of [`Found::has`]: first what AVX2 needs, then what AVX-512
/// needs besides. AVX2 does not imply POPCNT and LZCNT, which have leaves of their own.
const NEEDED: [&str; 10] = [
    "AVX2",
    "BMI1",
    "BMI2",
    "POPCNT",
    "LZCNT",
    "saved AVX registers",
    "AVX512F",
    "AVX512BW",
    "AVX512VL",
    "saved AVX-512 registers",
];
const FOR_AVX2: usize = 6;

/// The words that CPUID and XGETBV return.
#[derive(Clone, Copy, Default)]
struct Found {
    leaf1_ecx: u32,
    leaf7_ebx: u32,
    extended1_ecx: u32,
    xcr0: u64,
}

impl Found {
    fn read() -> Self {
        const OSXSAVE: u32 = 1 << 27;
        const EXTENDED: u32 = 0x8000_0000;
        let leaf1_ecx = __cpuid(1).ecx;
        Self {
            leaf1_ecx,
            leaf7_ebx: if __cpuid(0).eax < 7 { 0 } else { __cpuid_count(7, 0).ebx },
            extended1_ecx: if __cpuid(EXTENDED).eax > EXTENDED {
                __cpuid(EXTENDED + 1).ecx
            } else {
                0
            },
            // SAFETY: OSXSAVE says that the operating system has enabled XGETBV.
            xcr0: if leaf1_ecx & OSXSAVE == 0 { 0 } else { unsafe { saved_state() } },
        }
    }

    /// Returns which of [`NEEDED`] the CPU and the operating system have.
    fn has(self) -> [bool; NEEDED.len()] {
        let bit = |word: u32, bit: u32| word >> bit & 1 == 1;
        let Self { leaf1_ecx, leaf7_ebx, extended1_ecx, xcr0 } = self;
        // AVX needs the SSE and AVX state; AVX-512 adds the opmask registers, the upper halves and the
        // upper registers.
        let saved = |state: u64| xcr0 & state == state;
        [
            bit(leaf7_ebx, 5),
            bit(leaf7_ebx, 3),
            bit(leaf7_ebx, 8),
            bit(leaf1_ecx, 23),
            bit(extended1_ecx, 5),
            saved(0b110),
            bit(leaf7_ebx, 16),
            bit(leaf7_ebx, 30),
            bit(leaf7_ebx, 31),
            saved(0b1110_0110),
        ]
    }
}

/// Returns XCR0 of a CPU that has XGETBV.
#[target_feature(enable = "xsave")]
fn saved_state() -> u64 {
    // SAFETY: register 0 exists on every CPU that has XGETBV.
    unsafe { _xgetbv(0) }
}

/// Returns whether AVX2, BMI1, BMI2, POPCNT and LZCNT can be used.
pub fn has_avx2() -> bool {
    Found::read().has()[..FOR_AVX2].iter().all(|&has| has)
}

/// Returns whether AVX-512 F, BW and VL can be used with all that [`has_avx2`] requires.
pub fn has_avx512() -> bool {
    missing().next().is_none()
}

/// Returns whether a CPU that [`has_avx512`] has AVX-512 VBMI too.
pub fn has_avx512_vbmi() -> bool {
    __cpuid_count(7, 0).ecx >> 1 & 1 == 1
}

/// Returns the names of what this CPU or its operating system lacks for AVX-512.
pub fn missing() -> impl Iterator<Item = &'static str> {
    lacking(Found::read())
}

fn lacking(found: Found) -> impl Iterator<Item = &'static str> {
    NEEDED.into_iter().zip(found.has()).filter(|(_, has)| !has).map(|(name, _)| name)
}

/// Returns the four words of a register. It is written in assembly, because the compiler would replace it by
/// an extraction of each word, which is twice the work for the shuffle port.
#[cfg(target_feature = "sse")]
#[inline(always)]
pub fn words(v: __m128i) -> [u32; 4] {
    let (low, high): (u64, u64);
    // SAFETY: the vector machines run only where AVX exists. The instructions read one register and
    // write two others, and change neither memory nor flags.
    unsafe {
        asm!(
            "vmovq {low}, {v}",
            "vpextrq {high}, {v}, 1",
            v = in(xmm_reg) v,
            low = out(reg) low,
            high = out(reg) high,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32]
}

/// Returns the four words of a register on a target that has no vector registers for assembly, as those
/// without an operating system.
#[cfg(not(target_feature = "sse"))]
#[inline(always)]
pub fn words(v: __m128i) -> [u32; 4] {
    // SAFETY: both types have 16 bytes, and any of them are four numbers.
    unsafe { core::mem::transmute(v) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cascade_lake_lacks_nothing_and_each_hidden_bit_has_a_name() {
        // A Cascade Lake has no AVX512_VBMI, which no machine needs.
        let found = Found {
            leaf1_ecx: 1 << 27 | 1 << 23,
            leaf7_ebx: 1 << 3 | 1 << 5 | 1 << 8 | 1 << 16 | 1 << 30 | 1 << 31,
            extended1_ecx: 1 << 5,
            xcr0: 0b1110_0111,
        };
        assert_eq!(lacking(found).count(), 0);
        let hidden = Found { leaf7_ebx: found.leaf7_ebx & !(1 << 30), ..found };
        assert!(lacking(hidden).eq(["AVX512BW"]));
        let unsaved = Found { xcr0: 0b111, ..found };
        assert!(lacking(unsaved).eq(["saved AVX-512 registers"]));
        assert!(lacking(Found::default()).eq(NEEDED));
    }
}
