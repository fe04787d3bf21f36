//! Stage Two: which core copies which misses.
//!
//! The miss lists of a batch lie side by side, request by request and in token order. With n misses and
//! C copying cores, core c takes `[floor(c·n/C), floor((c+1)·n/C))` of that one list ([`Strategy::Balanced`],
//! the paper's S3): no two cores differ by more than one row, whatever the requests look like. S1 and S2
//! are what others do, for comparison.

use core::ops::Range;

/// How misses are spread over cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// S1: whole requests to cores.
    Request,
    /// S2: equal shares of the selected positions, hits included.
    Position,
    /// S3: equal shares of the misses.
    #[default]
    Balanced,
}

/// Where share `core` of `n` things over `cores` cores begins: floor(core · n / cores).
#[inline]
pub fn share_start(n: usize, core: usize, cores: usize) -> usize {
    // A quotient and a remainder each: core · n would not fit a word for every n.
    let (whole, rest) = (n / cores, n % cores);
    core * whole + core * rest / cores
}

/// One request's part in a batch's miss lists.
#[derive(Clone, Copy, Debug)]
pub struct RequestMisses<'a> {
    /// Positions (token · K + lane) of its misses, ascending.
    pub positions: &'a [i32],
    /// Its selected positions: tokens · K.
    pub selected: usize,
}

/// Calls `run(request, range of its miss list)` for every piece that `core` copies; none is empty.
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
            // A padded request has no misses, and no state for `run` to look up.
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
mod tests {
    use super::*;

    #[test]
    fn cuts_cover_and_differ_by_at_most_one() {
        // Miri runs a thousandth as fast, and finds nothing new in the two-hundredth length.
        let (lengths, most) = if cfg!(miri) { (12, 8) } else { (200, 50) };
        for n in 0..lengths {
            for cores in 1..most {
                let sizes =
                    (0..cores).map(|c| share_start(n, c + 1, cores) - share_start(n, c, cores));
                let (low, high) = sizes.fold((usize::MAX, 0), |(l, h), s| (l.min(s), h.max(s)));
                assert!(
                    high - low <= 1
                        && share_start(n, 0, cores) == 0
                        && share_start(n, cores, cores) == n
                );
                assert!((0..=cores).all(|c| share_start(n, c, cores) == c * n / cores));
            }
        }
        assert_eq!(share_start(usize::MAX, 3, 3), usize::MAX);
    }

    #[test]
    fn every_strategy_copies_every_miss_once() {
        let lists: [&[i32]; 4] = [&[0, 1, 2, 9], &[], &[5], &[0, 7, 8, 15, 16, 17]];
        for strategy in [Strategy::Request, Strategy::Position, Strategy::Balanced] {
            for cores in 1..10 {
                let mut seen = [[0; 8]; 4];
                for core in 0..cores {
                    let share = |r: usize| RequestMisses { positions: lists[r], selected: 20 };
                    for_each_range(strategy, core, cores, 4, share, |r, range| {
                        assert!(!range.is_empty());
                        range.for_each(|i| seen[r][i] += 1);
                    });
                }
                for (r, list) in lists.iter().enumerate() {
                    assert!(
                        seen[r].iter().enumerate().all(|(i, &n)| n == i32::from(i < list.len()))
                    );
                }
            }
        }
    }
}
