//! Stage One's time in relation to the modelled paper kernel, over the ranges of the constants.
//!
//! Both times are sums in which each constant is a factor of some terms. So their ratio rises or falls
//! steadily with each constant, and its largest and smallest values are at ends of the ranges.

use serde::Serialize;

use super::constants::{CONSTANTS, Constants};

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

/// Returns the constants that have a range, unless `--set` gave them a value.
fn ranged(c: &Constants) -> impl Iterator<Item = usize> {
    let free =
        |&at: &usize| CONSTANTS[at].lo < CONSTANTS[at].hi && c.at(at) == CONSTANTS[at].default;
    (0..CONSTANTS.len()).filter(free)
}

/// Returns the times at both ends of each range that changes their ratio.
pub fn rows(c: &Constants, times: impl Fn(&Constants) -> Times) -> Vec<RangeRow> {
    let row = |at: usize| {
        let k = &CONSTANTS[at];
        let [low, high] = [k.lo, k.hi].map(|value| times(&c.with_at(at, value)));
        RangeRow { constant: k.name, unit: k.unit, range: [k.lo, k.hi], low, high }
    };
    ranged(c).map(row).filter(|row| row.low.ratio != row.high.ratio).collect()
}

/// Compares the times over the ranges of all constants.
pub fn goal(of: &'static str, c: &Constants, times: impl Fn(&Constants) -> Times) -> Goal {
    let [smallest, largest] = [-1.0, 1.0].map(|sign| extreme(c, &times, sign));
    let met = largest.times.ratio <= GOAL;
    Goal { of, value: times(c), smallest, largest, met }
}

/// Returns the times where `sign` times their ratio is largest. A constant is moved to an end of its
/// range as long as that raises the value.
fn extreme(c: &Constants, times: &impl Fn(&Constants) -> Times, sign: f64) -> Extreme {
    let (mut at_best, mut best) = (*c, times(c));
    let mut improved = true;
    while improved {
        improved = false;
        for at in ranged(c) {
            for value in [CONSTANTS[at].lo, CONSTANTS[at].hi] {
                let there = at_best.with_at(at, value);
                let found = times(&there);
                if sign * found.ratio > sign * best.ratio {
                    (at_best, best, improved) = (there, found, true);
                }
            }
        }
    }
    let moved = ranged(c).filter(|&at| at_best.at(at) != c.at(at));
    let set = moved.map(|at| format!("{}={}", CONSTANTS[at].name, at_best.at(at))).collect();
    Extreme { times: best, set }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::constants::Name;

    /// Times with products of two constants, as those of shared tables are.
    fn times(c: &Constants) -> Times {
        let get = |name| c.get(name);
        let crowded = get(Name::Crowd) * 300.0 / get(Name::Bandwidth);
        let ours = get(Name::Syncall) + 0.1 * get(Name::Scalar) + crowded;
        Times::new(ours, get(Name::PaperMiss) * get(Name::Scalar) + 100.0 / get(Name::Bandwidth))
    }

    #[test]
    fn no_corner_of_the_ranges_is_outside_of_the_extremes() {
        let c = Constants::default();
        let found = goal("all", &c, times);
        let names = [Name::Syncall, Name::Scalar, Name::Crowd, Name::Bandwidth, Name::PaperMiss];
        let (mut least, mut most) = (f64::MAX, 0.0f64);
        for corner in 0..1 << names.len() {
            let at = |(n, name): (usize, &Name)| {
                let k = CONSTANTS[*name as usize];
                (*name as usize, if corner >> n & 1 == 1 { k.hi } else { k.lo })
            };
            let there = names.iter().enumerate().map(at).fold(c, |c, (at, v)| c.with_at(at, v));
            least = least.min(times(&there).ratio);
            most = most.max(times(&there).ratio);
        }
        assert_eq!((found.smallest.times.ratio, found.largest.times.ratio), (least, most));
        assert!(found.smallest.times.ratio < found.value.ratio);
        assert!(found.largest.set.contains(&"syncall=5".to_owned()), "{found:?}");
        assert_eq!(rows(&c, times).len(), names.len());
    }

    #[test]
    fn a_constant_that_was_set_stays() {
        let c = Constants::default().with("syncall=3").unwrap();
        let found = goal("all", &c, times);
        assert!(found.largest.set.iter().all(|set| !set.starts_with("syncall")), "{found:?}");
        assert!(rows(&c, times).iter().all(|row| row.constant != "syncall"));
    }
}
