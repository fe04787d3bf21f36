//! A model of the time of a transfer on the paper's device. It takes the row counts per core from the
//! operator's own code.
//!
//! The model is fitted to the paper's host-to-device table: a core takes t0 and then a fixed time per
//! row of 1152 bytes, all cores together are limited by the bandwidth of the link, and the transfer
//! ends with its last core.

use anyhow::Result;
use avsg::device::stage_two::{RequestMisses, Strategy, for_each_range};
use serde::{Deserialize, Serialize};

use super::miss_lists::{STRATEGIES, miss_lists};

/// The fitted constants.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Model {
    /// Number of cores that copy.
    pub cores: usize,
    /// Microseconds before a core's first row.
    pub t0_us: f64,
    /// Microseconds per row of a core.
    pub row_us: f64,
    /// Bytes per row, the size that the model is fitted to.
    pub row_bytes: usize,
    /// Bandwidth of the link in 10^9 bytes per second.
    pub link_gbs: f64,
}

/// Number of copying cores with which the model fits the paper's table; the paper does not state it.
pub const PAPER_CORES: usize = 40;

/// A row of the paper's table and the model's figures for it; arrays are S1, S2, S3.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PublishedRow {
    /// Requests per batch.
    pub requests: usize,
    /// Percent of the selected ids that are resident.
    pub reuse: u32,
    /// Bandwidth that the paper measured, in 10^9 bytes per second.
    pub paper_gbs: [f64; 3],
    /// Bandwidth that the model computes for contiguous hits, in 10^9 bytes per second.
    pub model_gbs: [f64; 3],
}

/// The paper's table and the model's figures for it.
#[derive(Clone, Debug, Serialize)]
pub struct Published {
    /// The 24 rows of the table.
    pub rows: Vec<PublishedRow>,
    /// Root mean square of the model's relative errors, in percent: S1, S2, S3.
    pub rms_percent: [f64; 3],
}

#[derive(Deserialize)]
struct H2d {
    k: usize,
    rows: Vec<H2dRow>,
}

#[derive(Deserialize)]
struct H2dRow {
    requests: usize,
    reuse: u32,
    s1_gbs: f64,
    s2_gbs: f64,
    s3_gbs: f64,
}

/// Compares the model with the paper's table (appendix "H2D Core-Binding Strategies").
///
/// # Errors
/// An error is returned if the committed table does not parse.
pub fn published() -> Result<Published> {
    let table: H2d = serde_json::from_str(include_str!("../../published/h2d.json"))?;
    let model = Model::new(PAPER_CORES);
    let row = |row: H2dRow| {
        let lists = miss_lists(table.k, row.requests, row.reuse, false, 0);
        PublishedRow {
            requests: row.requests,
            reuse: row.reuse,
            paper_gbs: [row.s1_gbs, row.s2_gbs, row.s3_gbs],
            model_gbs: STRATEGIES.map(|strategy| model.gbs(strategy, &lists, table.k)),
        }
    };
    let rows: Vec<_> = table.rows.into_iter().map(row).collect();
    let rms_percent = [0, 1, 2].map(|at| {
        let error = |row: &PublishedRow| row.model_gbs[at] / row.paper_gbs[at] - 1.0;
        let squares: f64 = rows.iter().map(|row| error(row).powi(2)).sum();
        100.0 * (squares / rows.len() as f64).sqrt()
    });
    Ok(Published { rows, rms_percent })
}

impl Model {
    /// Creates the model of the paper's device with `cores` copying cores.
    pub fn new(cores: usize) -> Self {
        Self { cores, t0_us: 3.0, row_us: 0.42, row_bytes: 1152, link_gbs: 105.0 }
    }

    /// Returns the microseconds of a transfer of these miss lists, of requests that select `selected`
    /// positions each.
    pub fn time_us(&self, strategy: Strategy, lists: &[Vec<i32>], selected: usize) -> f64 {
        let share = |r: usize| RequestMisses { positions: &lists[r], selected };
        let rows_of = |core| {
            let mut rows = 0;
            let count = |_, range: std::ops::Range<usize>| rows += range.len();
            for_each_range(strategy, core, self.cores, lists.len(), share, count);
            rows
        };
        let busiest = (0..self.cores).map(rows_of).max().unwrap_or(0);
        let rows: usize = lists.iter().map(Vec::len).sum();
        let link = (rows * self.row_bytes) as f64 / (self.link_gbs * 1e3);
        (self.t0_us + self.row_us * busiest as f64).max(link)
    }

    /// Returns the throughput of a transfer of these miss lists in 10^9 bytes per second.
    pub fn gbs(&self, strategy: Strategy, lists: &[Vec<i32>], selected: usize) -> f64 {
        let rows: usize = lists.iter().map(Vec::len).sum();
        (rows * self.row_bytes) as f64 / self.time_us(strategy, lists, selected) / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The model is near the paper's bandwidths, and near its largest speedups of S3 over S1 and S2.
    #[test]
    fn the_model_is_near_the_papers_table() {
        let Published { rows, rms_percent } = published().unwrap();
        assert_eq!(rows.len(), 24);
        for (rms, limit) in rms_percent.into_iter().zip([5.0, 10.0, 5.0]) {
            assert!(rms < limit, "{rms_percent:?}");
        }
        for (requests, reuse, slower) in [(1, 25, 0), (8, 75, 1)] {
            let row = rows.iter().find(|r| (r.requests, r.reuse) == (requests, reuse)).unwrap();
            let speedup = |gbs: [f64; 3]| gbs[2] / gbs[slower];
            let error = speedup(row.model_gbs) / speedup(row.paper_gbs) - 1.0;
            assert!(error.abs() < 0.1, "{row:?}");
        }
    }
}
