//! A model of the time of a transfer on the paper's device. It takes the row counts per core from the
//! operator's own code.
//!
//! The model is fitted to the paper's host-to-device table: a core takes a start time and then a fixed
//! time per row of 1152 bytes, all cores together are limited by the bandwidth of the link, and the
//! transfer ends with its last core.

use avsg::device::stage_two::{RequestMisses, Strategy, for_each_range};
use avsg_testkit::splitmix::SplitMix64;

/// Number of copying cores with which the model fits the paper's table; the paper does not state it.
pub const CORES: usize = 40;
/// Microseconds before a core's first row.
pub const START_US: f64 = 3.0;
/// Microseconds per row of a core.
pub const ROW_US: f64 = 0.42;
/// Bandwidth of the link in 10^9 bytes per second.
pub const LINK_GBS: f64 = 105.0;
/// Bytes per row.
const ROW_BYTES: usize = 1152;
/// The ids that a request selects.
const K: usize = 2048;

/// The strategies S1, S2 and S3: whole requests to cores, equal shares of the selected positions, and
/// equal shares of the misses.
const STRATEGIES: [Strategy; 3] = [Strategy::Request, Strategy::Position, Strategy::Balanced];

/// Returns the throughput of S1, S2 and S3 in 10^9 bytes per second, for `requests` requests of which
/// `reuse` percent of the ids hit. The hits are the first ids of a request, or random ones if
/// `scattered`.
pub fn gbs(requests: usize, reuse: usize, scattered: bool) -> [f64; 3] {
    let mut random = SplitMix64::new(7);
    let misses = |_| {
        let mut positions: Vec<i32> = (0..K as i32).collect();
        if scattered {
            random.shuffle(&mut positions);
        }
        let mut misses = positions.split_off(K * reuse / 100);
        misses.sort_unstable();
        misses
    };
    let lists: Vec<Vec<i32>> = (0..requests).map(misses).collect();
    let bytes = lists.iter().map(Vec::len).sum::<usize>() * ROW_BYTES;
    let share = |r: usize| RequestMisses { positions: &lists[r], selected: K };
    STRATEGIES.map(|strategy| {
        let rows_of = |core| {
            let mut rows = 0;
            let count = |_, range: std::ops::Range<usize>| rows += range.len();
            for_each_range(strategy, core, CORES, requests, share, count);
            rows
        };
        let busiest = (0..CORES).map(rows_of).max().unwrap_or(0);
        let us = START_US + ROW_US * busiest as f64;
        bytes as f64 / us.max(bytes as f64 / (LINK_GBS * 1e3)) / 1e3
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::TRANSFERS;

    /// The model is near the paper's bandwidths, and near its largest speedups of S3 over S1 and S2.
    #[test]
    fn the_model_is_near_the_papers_table() {
        for (at, limit) in [(0, 0.05), (1, 0.1), (2, 0.05)] {
            let error = |&(b, reuse, paper): &(usize, usize, [f64; 3])| {
                gbs(b, reuse, false)[at] / paper[at] - 1.0
            };
            let squares = TRANSFERS.iter().map(|row| error(row).powi(2)).sum::<f64>();
            assert!((squares / 24.0).sqrt() < limit, "S{}", at + 1);
        }
        for (requests, reuse, slower) in [(1, 25, 0), (8, 75, 1)] {
            let same = |row: &&(usize, usize, _)| (row.0, row.1) == (requests, reuse);
            let paper = TRANSFERS.iter().find(same).unwrap().2;
            let speedup = |gbs: [f64; 3]| gbs[2] / gbs[slower];
            let error = speedup(gbs(requests, reuse, false)) / speedup(paper) - 1.0;
            assert!(error.abs() < 0.1, "B = {requests}, {reuse} %: {error}");
        }
    }
}
