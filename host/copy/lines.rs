//! The loops that copy one row line by line, for each instruction set.

/// Copies a row from the first pointer to the second and prefetches another row at both ends.
///
/// # Safety
/// Source and destination are valid for that many bytes and disjoint, and the CPU has the
/// instructions. The prefetched addresses may be invalid.
pub(super) type RowCopier = unsafe fn(*const u8, *mut u8, usize, (*const u8, *const u8));

#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{fence, row_copier};

#[cfg(not(target_arch = "x86_64"))]
pub(super) use portable::{fence, row_copier};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch, _mm_sfence};

    use super::RowCopier;

    /// The length of a cache line in bytes. Prefetches step by it, and streamed stores fill whole
    /// lines: a line that non-temporal stores write in part is read from memory.
    const LINE: usize = 64;

    /// Returns the widest loop that this CPU can run; `None` without AVX2.
    pub(in super::super) fn row_copier(stream: bool) -> Option<RowCopier> {
        if is_x86_feature_detected!("avx512f") {
            Some(if stream { avx512::copy::<true> } else { avx512::copy::<false> })
        } else if is_x86_feature_detected!("avx2") {
            Some(if stream { avx2::copy::<true> } else { avx2::copy::<false> })
        } else {
            None
        }
    }

    /// Orders streamed stores before all later stores.
    pub(in super::super) fn fence() {
        // SAFETY: every x86_64 CPU has SSE.
        unsafe { _mm_sfence() };
    }

    #[inline]
    fn prefetch_line(row: *const u8, at: usize) {
        // SAFETY: every x86_64 CPU has SSE, and a prefetch of an invalid address does nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(at).cast()) };
    }

    /// Defines the loops for one register type. It is a macro, because an intrinsic is inlined
    /// only into a function that names its feature.
    macro_rules! loops {
        ($name:ident, $feature:literal, $reg:ident, $load:ident, $store:ident, $stream:ident) => {
            mod $name {
                use std::arch::x86_64::{$load, $reg, $store, $stream};
                use std::ptr::copy_nonoverlapping;

                use super::{LINE, prefetch_line};

                /// With `STREAM` the stores are non-temporal.
                ///
                /// # Safety
                /// As for [`RowCopier`](super::RowCopier).
                #[target_feature(enable = $feature)]
                pub(super) unsafe fn copy<const STREAM: bool>(
                    from: *const u8,
                    to: *mut u8,
                    bytes: usize,
                    next: (*const u8, *const u8),
                ) {
                    let prefetch = |at: usize| {
                        prefetch_line(next.0, at);
                        if !STREAM {
                            prefetch_line(next.1, at);
                        }
                    };
                    let mut at = 0;
                    if STREAM {
                        at = (to.addr().wrapping_neg() % LINE).min(bytes);
                        prefetch(0);
                        // SAFETY: `at <= bytes`, and both ends are valid for `bytes` bytes and disjoint
                        // (`# Safety`).
                        unsafe { copy_nonoverlapping(from, to, at) };
                    }
                    while at + LINE <= bytes {
                        prefetch(at);
                        for part in (at..at + LINE).step_by(size_of::<$reg>()) {
                            // SAFETY: a line is a multiple of the register, so this one ends at or
                            // before `at + LINE <= bytes`, and both ends are valid for `bytes` bytes
                            // (`# Safety`). Streamed stores are aligned, because `to + at`
                            // begins a line and `part - at` is a multiple of the register.
                            unsafe {
                                let (to, register) =
                                    (to.add(part).cast(), $load(from.add(part).cast()));
                                if STREAM { $stream(to, register) } else { $store(to, register) }
                            }
                        }
                        at += LINE;
                    }
                    // The last line of `next` is prefetched separately, because `next` may be
                    // aligned otherwise than this row.
                    prefetch(bytes.saturating_sub(1));
                    // SAFETY: `at <= bytes`, and both ends are valid for `bytes` bytes and disjoint
                    // (`# Safety`).
                    unsafe { copy_nonoverlapping(from.add(at), to.add(at), bytes - at) };
                }
            }
        };
    }

    loops! { avx512, "avx512f", __m512i,
    _mm512_loadu_si512, _mm512_storeu_si512, _mm512_stream_si512 }
    loops! { avx2, "avx2", __m256i, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_stream_si256 }

    #[cfg(test)]
    mod tests {
        use super::super::RowCopier;
        use super::*;

        /// The tests of `Copier` run the widest loop only; this one runs every loop of this CPU.
        #[test]
        fn every_width_copies_every_size() {
            let mut loops: Vec<RowCopier> = Vec::new();
            if is_x86_feature_detected!("avx2") {
                loops.extend([avx2::copy::<false> as RowCopier, avx2::copy::<true>]);
            }
            if is_x86_feature_detected!("avx512f") {
                loops.extend([avx512::copy::<false> as RowCopier, avx512::copy::<true>]);
            }
            let from: Vec<u8> = (0..700u32).map(|i| (i * 7 + 1) as u8).collect();
            for copy in loops {
                for bytes in 1..300 {
                    let (skew, at) = (bytes % 67, bytes % 71);
                    let mut to = vec![0u8; 500];
                    let next = (from.as_ptr(), std::ptr::null());
                    // SAFETY: 67 + 300 < 700 and 71 + 300 < 500, so the ranges are inside their
                    // vectors, which are disjoint; this CPU has the instructions of the loops.
                    unsafe { copy(from.as_ptr().add(skew), to.as_mut_ptr().add(at), bytes, next) };
                    fence();
                    assert_eq!(to[at..at + bytes], from[skew..skew + bytes]);
                    assert!(to[..at].iter().chain(&to[at + bytes..]).all(|&byte| byte == 0));
                }
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod portable {
    use super::RowCopier;

    /// Returns no loop: `memcpy` copies each row.
    pub(in super::super) fn row_copier(_stream: bool) -> Option<RowCopier> {
        None
    }

    pub(in super::super) fn fence() {}
}
