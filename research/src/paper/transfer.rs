//! The paper's bandwidths of three strategies, beside a model that is fitted to them: a core takes a start time and a
//! time per row, the bandwidth of the link limits all cores together, and Stage Two ends with its last core.

use avsg::device::stage_two::{RequestMisses, Strategy, for_each_range};
use avsg_testkit::splitmix::SplitMix64;

use super::section::{Quantity, Section, Table};
use crate::published::TRANSFERS;

/// Copying cores, microseconds before a core's first row, microseconds per row of 1152 bytes, and GB/s of the link.
const CORES: usize = 40;
const START_US: f64 = 3.0;
const ROW_US: f64 = 0.42;
const LINK_GBS: f64 = 105.0;
/// Bytes of a row.
const ROW: f64 = 1152.0;
/// The ids that a request of the paper's host-to-device table selects.
const K: usize = 2048;

/// Returns the throughput of the paper's strategies in 10^9 bytes per second, for `requests` requests of which `reuse`
/// percent of the ids hit. S1 gives whole requests to cores, S2 equal shares of the selected positions, and S3 equal
/// shares of the misses; the operator's own code counts the rows of each core. The hits are the first ids of a request,
/// or random ones if `scattered`.
fn strategies_gbs(requests: usize, reuse: usize, scattered: bool) -> [f64; 3] {
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
    let bytes = ROW * lists.iter().map(Vec::len).sum::<usize>() as f64;
    let share = |r: usize| RequestMisses { positions: &lists[r], selected: K };
    [Strategy::Request, Strategy::Position, Strategy::Balanced].map(|strategy| {
        let rows_of = |core| {
            let mut rows = 0;
            let count = |_, range: std::ops::Range<usize>| rows += range.len();
            for_each_range(strategy, core, CORES, requests, share, count);
            rows
        };
        let busiest = (0..CORES).map(rows_of).max().unwrap_or(0) as f64;
        let us = (START_US + busiest * ROW_US).max(bytes / (LINK_GBS * 1e3));
        bytes / us / 1e3
    })
}

/// Compares the model of a transfer with the paper's bandwidths and speedups.
pub fn transfer() -> Section {
    let names = ["S1, GB/s", "S2, GB/s", "S3, GB/s"];
    let keys = ["B", "reuse, %"];
    let mut bandwidths = Table::new("Effective bandwidth, contiguous hits", &keys);
    let mut speedups = Table::new("Speedup of S3", &keys);
    for (requests, reuse, paper) in TRANSFERS {
        let key = || [requests.to_string(), reuse.to_string()];
        let model = strategies_gbs(requests, reuse, false);
        let rate = |at: usize| Quantity::percent(names[at], 1).figure(paper[at], model[at]);
        bandwidths.row(key(), (0..3).map(rate).collect());
        let speedup = |name, at: usize| {
            Quantity::percent(name, 2).figure(paper[2] / paper[at], model[2] / model[at])
        };
        speedups.row(key(), vec![speedup("S3 : S1", 0), speedup("S3 : S2", 1)]);
    }
    let [s1, s2, s3] = [0, 1, 2].map(|at| bandwidths.rms(at));
    let scattered = strategies_gbs(8, 75, true);
    let text = vec![
        "Figures \"H2D bandwidth gains\" and \"Effective H2D bandwidth\", and the table of appendix \"H2D Core-Binding \
         Strategies\". **The figures of here are from a model, not measured.** It takes the number of rows of each core from \
         the operator's own code for the three strategies."
            .into(),
        format!(
            "Fitted to this table: {CORES} cores, {START_US} us per core and {ROW_US} us per row, a link of {LINK_GBS} GB/s. \
             Root mean square of the differences: S1 {s1:.1} %, S2 {s2:.1} %, S3 {s3:.1} %. The paper does not state where its \
             hits are; with scattered hits S2 would be nearly as fast as S3 (S3 : S2 is {:.2} at B = 8 and 75 % reuse).",
            scattered[2] / scattered[1]
        ),
    ];
    Section { title: "Transfer with three strategies", text, tables: vec![bandwidths, speedups] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The model is near the paper's bandwidths, and near its largest speedups of S3 over S1 and S2.
    #[test]
    fn the_model_is_near_the_papers_table() {
        let Section { tables, .. } = transfer();
        for (at, limit) in [(0, 5.0), (1, 10.0), (2, 5.0)] {
            assert!(tables[0].rms(at) < limit, "S{}", at + 1);
        }
        for (keys, at) in [(["1", "25"], 0), (["8", "75"], 1)] {
            let row = tables[1].rows.iter().find(|row| row.keys == keys).unwrap();
            let error = row.figures[at].here / row.figures[at].paper.unwrap() - 1.0;
            assert!(error.abs() < 0.1, "{keys:?}: {error}");
        }
    }
}
