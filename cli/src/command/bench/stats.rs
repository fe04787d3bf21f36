//! What a list of times comes to.

/// Median, means and the quiet tenth of times in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// Half of the times are below it.
    pub median: f64,
    /// The mean without the tenth at either end: interruptions do not count.
    pub trimmed_mean: f64,
    /// The mean of all.
    pub mean: f64,
    /// A tenth of the times are below it: what a run without interruptions takes. Where threads wait
    /// for each other, one interruption of one of them costs a whole time slice, and on a shared
    /// machine the median then tells more about the neighbours than about the copy.
    pub quiet: f64,
}

/// Sums up times. Zeros for none.
pub fn summary(times: &mut [f64]) -> Summary {
    times.sort_unstable_by(f64::total_cmp);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    let cut = times.len() / 10;
    let inner = &times[cut..times.len() - cut];
    let median = match times.len() {
        0 => 0.0,
        n if n % 2 == 1 => times[n / 2],
        n => f64::midpoint(times[n / 2 - 1], times[n / 2]),
    };
    let quiet = times.get(times.len() / 10).copied().unwrap_or_default();
    Summary { median, trimmed_mean: mean(inner), mean: mean(times), quiet }
}
