//! What a transfer would take on the paper's device, from the row counts of the real code.
//!
//! The paper's host-to-device times fit this: a core takes t0 and then so much for each 1152-byte row,
//! and all cores together take no more than the link gives. The transfer ends with its last core.

use avsg::device::stage_two::{Share, Strategy, pieces};
use serde::Serialize;

/// The fit.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Model {
    /// Copying cores.
    pub cores: usize,
    /// Before a core's first row, us.
    pub t0_us: f64,
    /// For each row of a core, us.
    pub row_us: f64,
    /// Bytes of a row that the fit holds for.
    pub row_bytes: usize,
    /// Of the link, 10^9 bytes a second.
    pub link_gbs: f64,
}

/// What the paper states and we know of; the rest of its table is not at hand.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Anchor {
    /// Requests.
    pub requests: usize,
    /// Of the selected ids, resident, in percent. None where it was not stated.
    pub reuse: Option<u32>,
    /// S3 is faster than this one.
    pub over: &'static str,
    /// So many times.
    pub speedup: f64,
}

/// The figures published.
pub const ANCHORS: [Anchor; 2] = [
    Anchor { requests: 1, reuse: None, over: "S1", speedup: 34.44 },
    Anchor { requests: 8, reuse: Some(75), over: "S2", speedup: 3.48 },
];

impl Model {
    /// The paper's device with so many copying cores.
    pub fn new(cores: usize) -> Self {
        Self { cores, t0_us: 3.0, row_us: 0.42, row_bytes: 1152, link_gbs: 105.0 }
    }

    /// Microseconds of a transfer of these miss lists, `selected` positions each.
    pub fn time_us(&self, strategy: Strategy, lists: &[Vec<i32>], selected: usize) -> f64 {
        let share = |r: usize| Share { positions: &lists[r], selected };
        let rows_of = |core| {
            let mut rows = 0;
            let count = |_, range: std::ops::Range<usize>| rows += range.len();
            pieces(strategy, core, self.cores, lists.len(), share, count);
            rows
        };
        let busiest = (0..self.cores).map(rows_of).max().unwrap_or(0);
        let rows: usize = lists.iter().map(Vec::len).sum();
        let link = (rows * self.row_bytes) as f64 / (self.link_gbs * 1e3);
        (self.t0_us + self.row_us * busiest as f64).max(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fit gives the published speedups to within a tenth.
    #[test]
    fn anchors_are_near() {
        let model = Model::new(40);
        let ratio = |lists: &[Vec<i32>], over| {
            model.time_us(over, lists, 2048) / model.time_us(Strategy::Balanced, lists, 2048)
        };
        let all: Vec<i32> = (0..2048).collect();
        let speedup = ratio(&[all], Strategy::Request);
        assert!((speedup / ANCHORS[0].speedup - 1.0).abs() < 0.1, "{speedup}");
        let quarter: Vec<i32> = (1536..2048).collect();
        let speedup = ratio(&vec![quarter; 8], Strategy::Position);
        assert!((speedup / ANCHORS[1].speedup - 1.0).abs() < 0.1, "{speedup}");
    }
}
