//! The row copier: the copies of Stage Two on the CPU device.
//!
//! Rows are a few hundred bytes to a few KiB, scattered and cold at both ends: the host pool and
//! the device buffer of all layers are far larger than any cache. A plain copy loop waits twice,
//! for the source lines and for the destination lines, which it then overwrites whole. There are
//! two remedies; the length of the rows and the CPU decide ([`Copier::for_rows`]):
//! - [`Copier::Prefetch`] prefetches a later row at both ends while it copies one;
//! - [`Copier::Stream`] prefetches the source and writes whole lines past the caches, so that the
//!   destination is never read. If the buffer would have stayed in the cache, this is slower: its
//!   reader then fetches the rows from memory.

use std::{fmt, ptr};

use loops::{fence, row_copier};

/// The loop that copies rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copier {
    /// One `memcpy` per row.
    Plain,
    /// Vector copies with software prefetch of both ends. It is the same as `Plain` on a CPU without AVX2.
    Prefetch {
        /// Distance of the prefetched row in rows; 0 prefetches nothing.
        ahead: usize,
    },
    /// Non-temporal stores with software prefetch of the source. It is the same as `Plain` on a CPU without
    /// AVX2.
    Stream {
        /// Distance of the prefetched row in rows; 0 prefetches nothing.
        ahead: usize,
    },
}

impl fmt::Display for Copier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain => f.pad("plain"),
            Self::Prefetch { ahead } => f.pad(&format!("prefetch+{ahead}")),
            Self::Stream { ahead } => f.pad(&format!("stream+{ahead}")),
        }
    }
}

impl Copier {
    /// Returns the default for rows of this length on this CPU (`avsg bench transfer`). On an Intel Xeon with AVX-512
    /// prefetching is the fastest loop for rows of 576 to 1152 bytes, or within 7 % of it, and streaming copies rows
    /// of 4096 and 16384 bytes 1.2 to 1.7 times as fast. On an AMD EPYC with AVX2 (Zen 3, eight runs) the default is
    /// the fastest loop for rows of 576, 656, 1152 and 4096 bytes, or within 2 % of it; at 1152 bytes prefetching
    /// reaches 86 to 95 % of it.
    pub fn for_rows(row_bytes: usize) -> Self {
        #[cfg(target_arch = "x86_64")]
        let streamed_from = if is_x86_feature_detected!("avx512f") { 4096 } else { 1024 };
        #[cfg(not(target_arch = "x86_64"))]
        let streamed_from = 4096;
        let ahead = 4;
        if row_bytes < streamed_from { Self::Prefetch { ahead } } else { Self::Stream { ahead } }
    }

    /// Copies `n` rows of `bytes` bytes, row i from `src(i)` to `dst(i)`. Both functions are called
    /// twice for most rows and must return the same address. Streamed stores are fenced before the
    /// function returns, so the rows are visible to every thread that synchronises with this one.
    ///
    /// # Safety
    /// For every i below `n`:
    /// - `src(i)` is valid for reads of `bytes` bytes, which no thread writes meanwhile;
    /// - `dst(i)` is valid for writes of `bytes` bytes, which no other thread accesses meanwhile;
    /// - no destination overlaps a source or another destination.
    #[inline]
    pub unsafe fn copy_rows(
        self,
        n: usize,
        bytes: usize,
        src: impl Fn(usize) -> *const u8,
        dst: impl Fn(usize) -> *mut u8,
    ) {
        let (ahead, stream) = match self {
            Self::Plain => (None, false),
            Self::Prefetch { ahead } => (Some(ahead), false),
            Self::Stream { ahead } => (Some(ahead), true),
        };
        let Some((ahead, row)) = ahead.zip(row_copier(stream)) else {
            for i in 0..n {
                // SAFETY: both ends are valid for `bytes` bytes and disjoint (`# Safety`).
                unsafe { ptr::copy_nonoverlapping(src(i), dst(i), bytes) };
            }
            return;
        };
        for i in 0..n {
            // The last rows prefetch themselves, which is cheaper than a second loop because they
            // are in the cache.
            let next = if ahead < n - i { i + ahead } else { i };
            let (from, to, next) = (src(i), dst(i), (src(next), dst(next).cast_const()));
            // SAFETY: both ends are valid for `bytes` bytes and disjoint (`# Safety`);
            // `row_copier` returned a function for the instructions of this CPU.
            unsafe { row(from, to, bytes, next) };
        }
        if stream {
            fence();
        }
    }
}

/// Copies a row from the first pointer to the second and prefetches another row at both ends.
///
/// # Safety
/// Source and destination are valid for that many bytes and disjoint, and the CPU has the
/// instructions. The prefetched addresses may be invalid.
type RowCopier = unsafe fn(*const u8, *mut u8, usize, (*const u8, *const u8));

#[cfg(target_arch = "x86_64")]
mod loops {
    use std::arch::x86_64::*;
    use std::ptr::copy_nonoverlapping;

    use super::RowCopier;

    /// The length of a cache line in bytes. Prefetches step by it, and streamed stores fill whole
    /// lines: a line that non-temporal stores write in part is read from memory.
    const LINE: usize = 64;

    /// Returns the widest loop that this CPU can run; `None` without AVX2.
    pub(super) fn row_copier(stream: bool) -> Option<RowCopier> {
        if is_x86_feature_detected!("avx512f") {
            Some(if stream { avx512::<true> } else { avx512::<false> })
        } else if is_x86_feature_detected!("avx2") {
            Some(if stream { avx2::<true> } else { avx2::<false> })
        } else {
            None
        }
    }

    /// Orders streamed stores before all later stores.
    pub(super) fn fence() {
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
    macro_rules! copy_loop {
        ($name:ident, $feature:literal, $reg:ident, $load:ident, $store:ident, $stream:ident) => {
            /// With `STREAM` the stores are non-temporal.
            ///
            /// # Safety
            /// As for [`RowCopier`].
            #[target_feature(enable = $feature)]
            unsafe fn $name<const STREAM: bool>(
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
        };
    }

    copy_loop! { avx512, "avx512f", __m512i,
    _mm512_loadu_si512, _mm512_storeu_si512, _mm512_stream_si512 }
    copy_loop! { avx2, "avx2", __m256i, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_stream_si256 }

    #[cfg(test)]
    mod tests;
}

#[cfg(not(target_arch = "x86_64"))]
mod loops {
    use super::RowCopier;

    /// Returns no loop: `memcpy` copies each row.
    pub(super) fn row_copier(_stream: bool) -> Option<RowCopier> {
        None
    }

    pub(super) fn fence() {}
}
