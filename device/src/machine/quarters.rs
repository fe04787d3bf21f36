//! The words of a quarter of a wide register as scalars, for the x86-64 machines.

#[cfg(target_feature = "sse")]
use core::arch::asm;
use core::arch::x86_64::__m128i;

/// Returns the two 64-bit halves of a register, each of which holds two lanes. It is written in
/// assembly, because the compiler would replace it by an extraction of each lane, which is twice
/// the work for the shuffle port.
#[cfg(target_feature = "sse")]
#[inline(always)]
pub fn pairs(v: __m128i) -> [u64; 2] {
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
    [low, high]
}

/// Returns the two 64-bit halves of a register on a target that has no vector registers for assembly, as
/// those without an operating system.
#[cfg(not(target_feature = "sse"))]
#[inline(always)]
pub fn pairs(v: __m128i) -> [u64; 2] {
    // SAFETY: both types have 16 bytes, and any of them are two numbers.
    unsafe { core::mem::transmute(v) }
}
