//! Stage Two in the model, fitted to the paper's host-to-device times: a core takes a start time and a
//! time per row, the bandwidth of the link limits all cores together, and Stage Two ends with its last
//! core.

use avsg::device::stage_two::{RequestMisses, Strategy, for_each_range};
use avsg_linker::ascend::soc::{OF_THE_PAPER, Soc};
use avsg_testkit::splitmix::SplitMix64;

use avsg_cli::constants::{Constants, Name};

/// Bytes of the row that the model is fitted to.
const ROW: usize = 1152;
/// The ids that a request of the paper's host-to-device table selects.
const K: usize = 2048;

/// Returns the microseconds to copy `rows` host rows that are spread evenly over all cores. Each segment
/// after the first adds two DMAs per row.
pub fn us(c: &Constants, soc: &Soc, rows: f64, segments: &[usize]) -> f64 {
    if rows <= 0.0 {
        return 0.0;
    }
    us_with(c, soc, (rows / f64::from(soc.cores)).ceil(), rows, segments)
}

/// Returns the microseconds to copy `rows` host rows, of which the core with the most copies `busiest`.
fn us_with(c: &Constants, soc: &Soc, busiest: f64, rows: f64, segments: &[usize]) -> f64 {
    let bytes = segments.iter().sum::<usize>() as f64;
    let extra = 2.0 * (segments.len() as f64 - 1.0) * soc.us(c.get(Name::Dma));
    let core = c.get(Name::H2dStart) + busiest * (c.get(Name::H2dRow) * bytes / ROW as f64 + extra);
    core.max(rows * bytes / (c.get(Name::H2dLink) * 1e3))
}

/// Returns the throughput of the paper's strategies in 10^9 bytes per second on the paper's chip, for
/// `requests` requests of which `reuse` percent of the ids hit. S1 gives whole requests to cores, S2
/// equal shares of the selected positions, and S3 equal shares of the misses; the operator's own code
/// counts the rows of each core. The hits are the first ids of a request, or random ones if `scattered`.
pub fn strategies_gbs(c: &Constants, requests: usize, reuse: usize, scattered: bool) -> [f64; 3] {
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
    let all_rows = lists.iter().map(Vec::len).sum::<usize>() as f64;
    let share = |r: usize| RequestMisses { positions: &lists[r], selected: K };
    let soc = &OF_THE_PAPER;
    let cores = soc.cores as usize;
    [Strategy::Request, Strategy::Position, Strategy::Balanced].map(|strategy| {
        let rows_of = |core| {
            let mut rows = 0;
            let count = |_, range: std::ops::Range<usize>| rows += range.len();
            for_each_range(strategy, core, cores, requests, share, count);
            rows
        };
        let busiest = (0..cores).map(rows_of).max().unwrap_or(0);
        all_rows * ROW as f64 / us_with(c, soc, busiest as f64, all_rows, &[ROW]) / 1e3
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::TRANSFERS;

    #[test]
    fn the_link_limits_many_rows_and_the_start_time_limits_few() {
        let c = Constants::default();
        let us = |rows, segments: &[usize]| us(&c, &OF_THE_PAPER, rows, segments);
        assert!((us(1.0, &[1152]) - 3.42).abs() < 1e-9);
        let link: f64 = 100_000.0 * 1152.0 / 105_000.0;
        assert!((us(100_000.0, &[1152]) - link.max(3.0 + 2500.0 * 0.42)).abs() < 1e-6);
        assert!(us(400.0, &[1024, 128]) > us(400.0, &[1152]));
        assert_eq!(us(0.0, &[1152]), 0.0);
    }

    /// The model is near the paper's bandwidths, and near its largest speedups of S3 over S1 and S2.
    #[test]
    fn the_model_is_near_the_papers_table() {
        let gbs = |requests, reuse| strategies_gbs(&Constants::default(), requests, reuse, false);
        for (at, limit) in [(0, 0.05), (1, 0.1), (2, 0.05)] {
            let error =
                |&(b, reuse, paper): &(usize, usize, [f64; 3])| gbs(b, reuse)[at] / paper[at] - 1.0;
            let squares = TRANSFERS.iter().map(|row| error(row).powi(2)).sum::<f64>();
            assert!((squares / 24.0).sqrt() < limit, "S{}", at + 1);
        }
        for (requests, reuse, slower) in [(1, 25, 0), (8, 75, 1)] {
            let same = |row: &&(usize, usize, _)| (row.0, row.1) == (requests, reuse);
            let paper = TRANSFERS.iter().find(same).unwrap().2;
            let speedup = |gbs: [f64; 3]| gbs[2] / gbs[slower];
            let error = speedup(gbs(requests, reuse)) / speedup(paper) - 1.0;
            assert!(error.abs() < 0.1, "B = {requests}, {reuse} %: {error}");
        }
    }
}
