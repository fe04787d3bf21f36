//! Summaries of times.

use std::time::Instant;

use serde::Serialize;

/// Percentiles of a list of times, in the unit of the times.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Summary {
    /// The mean.
    #[serde(skip)]
    pub mean: f64,
    /// The first decile, which approximates a run without interruptions. Where threads wait for each
    /// other, an interruption of one of them delays the result by a time slice, and on a shared machine
    /// the median then measures the other tenants.
    pub p10: f64,
    /// The median.
    pub p50: f64,
    /// The ninth decile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl Summary {
    /// Returns the ninth decile divided by the median, which is large if the runs were disturbed; NaN
    /// without times.
    pub fn spread(&self) -> f64 {
        self.p90 / self.p50
    }
}

/// Summarises `times`, and sorts them; the summary of no times is zeros.
pub fn summary(times: &mut [f64]) -> Summary {
    times.sort_unstable_by(f64::total_cmp);
    let p50 = match times.len() {
        0 => 0.0,
        n if n % 2 == 1 => times[n / 2],
        n => f64::midpoint(times[n / 2 - 1], times[n / 2]),
    };
    let [p10, p90, p99] =
        [10, 90, 99].map(|n| times.get(times.len() * n / 100).copied().unwrap_or_default());
    let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
    Summary { mean, p10, p50, p90, p99 }
}

/// Returns the microseconds since an instant.
pub fn us_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests;
