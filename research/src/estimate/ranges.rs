//! Stage One's time in relation to the modelled paper kernel, over the ranges of the constants.
//!
//! All sets of constants that a table needs are timed in one launch. The ratio of all constants together is taken
//! where each constant is at the end of its range at which it alone makes the ratio larger or smaller.

use serde::Serialize;

use avsg_cli::constants::{CONSTANTS, Constants, Name};

/// The goal: the largest share of the modelled paper kernel's time that Stage One may take.
pub const GOAL: f64 = 0.5;

/// Stage One of both kernels with some constants, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    /// The operator's own kernel.
    pub ours_us: f64,
    /// The modelled paper kernel.
    pub paper_us: f64,
    /// `ours_us` / `paper_us`.
    pub ratio: f64,
}

impl Times {
    /// Returns the times with their ratio.
    pub fn new(ours_us: f64, paper_us: f64) -> Self {
        Self { ours_us, paper_us, ratio: ours_us / paper_us }
    }
}

/// The times at both ends of the range of one constant; all others have their values.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RangeRow {
    pub constant: &'static str,
    pub unit: &'static str,
    pub range: [f64; 2],
    pub low: Times,
    pub high: Times,
}

/// The times where their ratio is smallest or largest.
#[derive(Clone, Debug, Serialize)]
pub struct Extreme {
    #[serde(flatten)]
    pub times: Times,
    /// The constants that differ from their values, as `--set` takes them.
    pub set: Vec<String>,
}

/// The ratio over the ranges of all constants.
#[derive(Clone, Debug, Serialize)]
pub struct Goal {
    /// Which part of Stage One is compared.
    pub of: &'static str,
    /// With the values of all constants.
    pub value: Times,
    pub smallest: Extreme,
    pub largest: Extreme,
    /// Whether the largest ratio is at most [`GOAL`].
    pub met: bool,
}

/// Returns the constants of Stage One that have a range, unless `--set` gave them a value.
fn ranged(c: &Constants) -> impl Iterator<Item = usize> {
    let free =
        |&at: &usize| CONSTANTS[at].lo < CONSTANTS[at].hi && c.at(at) == CONSTANTS[at].default;
    (0..=Name::LaunchAll as usize).filter(free)
}

/// Returns the constants, and then those with the low and the high end of each range.
pub fn ends(c: &Constants) -> Vec<Constants> {
    let ends =
        ranged(c).flat_map(|at| [CONSTANTS[at].lo, CONSTANTS[at].hi].map(|v| c.with_at(at, v)));
    [*c].into_iter().chain(ends).collect()
}

/// Returns the constants where the ratio of the times at the [`ends`] is smallest, and where it is largest.
pub fn corners(c: &Constants, ends: &[Times]) -> [Constants; 2] {
    let corner = |largest: bool| {
        ranged(c).zip(ends[1..].chunks(2)).fold(*c, |corner, (at, ends)| {
            let high = (ends[1].ratio > ends[0].ratio) == largest;
            let moved = if high { CONSTANTS[at].hi } else { CONSTANTS[at].lo };
            if ends[0].ratio == ends[1].ratio { corner } else { corner.with_at(at, moved) }
        })
    };
    [false, true].map(corner)
}

/// Returns the times at the [`ends`] of each range that changes their ratio.
pub fn rows(c: &Constants, ends: &[Times]) -> Vec<RangeRow> {
    let row = |(at, ends): (usize, &[Times])| {
        let k = &CONSTANTS[at];
        RangeRow {
            constant: k.name,
            unit: k.unit,
            range: [k.lo, k.hi],
            low: ends[0],
            high: ends[1],
        }
    };
    let rows = ranged(c).zip(ends[1..].chunks(2)).map(row);
    rows.filter(|row| row.low.ratio != row.high.ratio).collect()
}

/// Returns the ratio with the constants and at both [`corners`].
pub fn goal(
    of: &'static str,
    c: &Constants,
    value: Times,
    corners: [(Constants, Times); 2],
) -> Goal {
    let [smallest, largest] = corners.map(|(corner, times)| {
        let moved = ranged(c).filter(|&at| corner.at(at) != c.at(at));
        let set = moved.map(|at| format!("{}={}", CONSTANTS[at].name, corner.at(at))).collect();
        Extreme { times, set }
    });
    let met = largest.times.ratio <= GOAL;
    Goal { of, value, smallest, largest, met }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_corner_has_the_ends_that_move_the_ratio_there() {
        let c = Constants::default().with("syncall=3").unwrap();
        let times = |c: &Constants| {
            let ours = c.get(Name::Head) + 2.0 * c.get(Name::Sync);
            Times::new(ours, 10.0 * c.get(Name::Scalar) + c.get(Name::Sync))
        };
        let ends: Vec<_> = ends(&c).iter().map(times).collect();
        let both = corners(&c, &ends);
        let found = goal("all", &c, ends[0], both.map(|corner| (corner, times(&corner))));
        assert_eq!(found.smallest.set, ["head=20", "scalar=11", "sync=10"]);
        assert_eq!(found.largest.set, ["head=30", "scalar=8", "sync=150"]);
        assert!(found.smallest.times.ratio < found.value.ratio);
        assert!(found.value.ratio < found.largest.times.ratio);
        // A constant that was set stays, and one without an effect is in no row.
        assert_eq!(rows(&c, &ends).len(), 3);
    }
}
