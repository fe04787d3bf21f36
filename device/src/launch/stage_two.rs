//! Stage Two: the division of the misses between the copying cores (Eq. 5 and 6).
//!
//! The miss lists of a batch form one list, request by request and in token order. With n misses
//! and C copying cores, core c takes `[floor(c·n/C), floor((c+1)·n/C))` of that list
//! ([`Strategy::Balanced`], the paper's S3): two cores differ by at most one row, whatever the
//! requests are. S1 and S2 (Eq. 13 and 14) are for comparison.

use core::ops::Range;

/// The division of misses between cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// S1: each core takes whole requests.
    Request,
    /// S2: each core takes an equal share of the selected positions, including hits.
    Position,
    /// S3: each core takes an equal share of the misses.
    #[default]
    Balanced,
}

/// Returns the start of share `core` of `n` items over `cores` cores: floor(core · n / cores).
#[inline]
pub fn share_start(n: usize, core: usize, cores: usize) -> usize {
    // The quotient and the remainder are multiplied separately, because core · n may overflow.
    let (whole, rest) = (n / cores, n % cores);
    core * whole + core * rest / cores
}

/// The misses of one request in the miss lists of a batch.
#[derive(Clone, Copy, Debug)]
pub struct RequestMisses<'a> {
    /// The positions (token · K + lane) of the misses, ascending.
    pub positions: &'a [i32],
    /// The number of selected positions: tokens · K.
    pub selected: usize,
}

/// Calls `run(request, range)` for every non-empty range of a request's miss list that `core`
/// copies.
#[inline]
pub fn for_each_range<'a>(
    strategy: Strategy,
    core: usize,
    cores: usize,
    requests: usize,
    share: impl Fn(usize) -> RequestMisses<'a>,
    mut run: impl FnMut(usize, Range<usize>),
) {
    if strategy == Strategy::Request {
        for request in share_start(requests, core, cores)..share_start(requests, core + 1, cores) {
            // A padded request has no misses and no state, so `run` must not be called for it.
            let n = share(request).positions.len();
            if n > 0 {
                run(request, 0..n);
            }
        }
        return;
    }
    let size = |s: &RequestMisses<'_>| match strategy {
        Strategy::Position => s.selected,
        _ => s.positions.len(),
    };
    let total = (0..requests).map(|r| size(&share(r))).sum();
    let (from, to) = (share_start(total, core, cores), share_start(total, core + 1, cores));
    let mut base = 0;
    for request in 0..requests {
        let share = share(request);
        let size = size(&share);
        let (low, high) =
            (from.clamp(base, base + size) - base, to.clamp(base, base + size) - base);
        base += size;
        let range = match strategy {
            Strategy::Position => {
                let index = |at: usize| share.positions.partition_point(|&p| (p as usize) < at);
                index(low)..index(high)
            }
            _ => low..high,
        };
        if !range.is_empty() {
            run(request, range);
        }
    }
}

#[cfg(test)]
mod tests;
