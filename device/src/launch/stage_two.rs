//! Stage Two: the division of the misses between the copying cores (Eq. 5 and 6).
//!
//! The miss lists of a batch form one list, request by request and in token order. With n misses
//! and C copying cores, core c takes `[floor(c·n/C), floor((c+1)·n/C))` of that list, which is the
//! paper's S3: two cores differ by at most one row, whatever the requests are.

use core::ops::Range;

/// Returns the start of share `core` of `n` items over `cores` cores: floor(core · n / cores).
#[inline]
pub fn share_start(n: usize, core: usize, cores: usize) -> usize {
    // The quotient and the remainder are multiplied separately, because core · n may overflow.
    let (whole, rest) = (n / cores, n % cores);
    core * whole + core * rest / cores
}

/// Calls `run(request, range)` for every non-empty range of a request's miss list that `core`
/// copies. `misses` returns the length of that list.
#[inline]
pub fn for_each_range(
    core: usize,
    cores: usize,
    requests: usize,
    misses: impl Fn(usize) -> usize,
    mut run: impl FnMut(usize, Range<usize>),
) {
    let total = (0..requests).map(&misses).sum();
    let (from, to) = (share_start(total, core, cores), share_start(total, core + 1, cores));
    let mut base = 0;
    for request in 0..requests {
        let end = base + misses(request);
        let range = from.clamp(base, end) - base..to.clamp(base, end) - base;
        base = end;
        // A padded request has no misses and no state.
        if !range.is_empty() {
            run(request, range);
        }
    }
}
