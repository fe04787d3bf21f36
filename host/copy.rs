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

mod lines;
mod measure;

use std::{fmt, ptr};

pub use measure::measure_copy;

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
        let Some((ahead, row)) = ahead.zip(lines::row_copier(stream)) else {
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
            lines::fence();
        }
    }
}
