//! The row copier: Stage Two's last step on the CPU device.
//!
//! Rows are a few hundred bytes to a few KiB, scattered at both ends, and cold at both ends: the
//! host pool is far larger than any cache, and so is the device buffer of all layers. A plain copy
//! loop then waits twice, for the source lines and for the destination lines that it is going to
//! overwrite whole. Two remedies, and measuring tells which:
//! - [`Copier::Prefetch`] asks for the lines of a later row, both ends, while it copies this one;
//! - [`Copier::Stream`] prefetches the source and writes whole lines past the caches, so that the
//!   destination is never read. Where the buffer would have stayed in the cache this is the wrong
//!   choice: the reader then fetches it from memory.

mod lines;
mod measure;

use std::{fmt, ptr};

pub use measure::measure_copy;

/// How rows are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copier {
    /// One `memcpy` after the other.
    Plain,
    /// Vector copies with software prefetch of both ends.
    Prefetch {
        /// How many rows ahead; 0 prefetches nothing.
        ahead: usize,
    },
    /// Non-temporal stores with software prefetch of the source. On machines that have none,
    /// `Prefetch`.
    Stream {
        /// How many rows ahead; 0 prefetches nothing.
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
    /// Copies `n` rows of `bytes` bytes, row i from `src(i)` to `dst(i)`. Both functions are called
    /// twice for most rows, with the same answer. When it returns, the rows are visible to whoever
    /// this thread synchronises with: streamed stores are fenced.
    ///
    /// # Safety
    /// For every i below `n`:
    /// - `src(i)` is valid for reads of `bytes` bytes, and nobody writes them meanwhile;
    /// - `dst(i)` is valid for writes of `bytes` bytes, and nobody else touches them meanwhile;
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
            Self::Plain => {
                for i in 0..n {
                    // SAFETY: the contract gives validity of both ends and that they are disjoint.
                    unsafe { ptr::copy_nonoverlapping(src(i), dst(i), bytes) };
                }
                return;
            }
            Self::Prefetch { ahead } => (ahead, false),
            Self::Stream { ahead } => (ahead, true),
        };
        let row = lines::row_copier(stream);
        for i in 0..n {
            // The last rows prefetch themselves, which are at hand: cheaper than a second loop.
            let next = if ahead < n - i { i + ahead } else { i };
            let (from, to, next) = (src(i), dst(i), (src(next), dst(next).cast_const()));
            // SAFETY: the contract gives validity and disjointness; `row_copier` returned a function
            // for the instructions that this CPU has.
            unsafe { row(from, to, bytes, next) };
        }
        if stream {
            lines::fence();
        }
    }
}
