//! The figures of a run.

use serde::Serialize;

/// The times of the parts of a request, in nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// The client sent the request.
    pub sent: u64,
    /// The prefill ended, which makes the first token.
    pub first: u64,
    /// A rank reserved memory for the request.
    pub reserved: u64,
    /// The first decode step began.
    pub decode: u64,
    /// The last token was made.
    pub end: u64,
}

/// How busy the ranks were.
#[derive(Clone, Copy, Debug, Default)]
pub struct Occupancy {
    /// Sum of the seconds of each decode step times the requests that ran in it.
    pub request_s: f64,
    /// Seconds of all decode steps together.
    pub step_s: f64,
    /// Number of decode steps.
    pub steps: u64,
    /// Largest number of requests that one rank ran.
    pub peak: usize,
}

/// The figures of a run; times of requests are means over the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Seconds from sending a request to its first token.
    pub ttft_s: f64,
    /// Seconds that a request waits for memory of a rank after its first token.
    pub wait_s: f64,
    /// Milliseconds per output token from the second token on, while the request decodes.
    pub tpot_ms: f64,
    /// The 99th percentile of the requests' milliseconds per output token.
    pub tpot_p99_ms: f64,
    /// Seconds from sending a request to its last token.
    pub e2e_s: f64,
    /// Output tokens per second from the start to the end of the run.
    pub output_tok_s: f64,
    /// Requests per second from the start to the end of the run.
    pub request_rate: f64,
    /// Milliseconds of a decode step.
    pub step_ms: f64,
    /// Requests that a rank runs, averaged over the time of the decode steps.
    pub running: f64,
    /// Largest number of requests that a rank runs.
    pub running_peak: f64,
}

impl Outcome {
    /// Computes the figures of a run of requests with these times and outputs on `ranks` ranks.
    pub fn of(times: &[Times], outputs: &[usize], occupancy: &Occupancy, ranks: usize) -> Self {
        let n = times.len() as f64;
        let mean =
            |ns: fn(&Times) -> u64| times.iter().map(|t| ns(t) as f64 / 1e9).sum::<f64>() / n;
        let decoded = times.iter().zip(outputs).filter(|&(_, &output)| output > 1);
        let mut tpot: Vec<f64> =
            decoded.map(|(t, &n)| (t.end - t.decode) as f64 / 1e6 / (n - 1) as f64).collect();
        tpot.sort_unstable_by(f64::total_cmp);
        let end = times.iter().map(|t| t.end).max().unwrap_or(0) as f64 / 1e9;
        Self {
            ttft_s: mean(|t| t.first - t.sent),
            wait_s: mean(|t| t.reserved - t.first),
            tpot_ms: tpot.iter().sum::<f64>() / tpot.len().max(1) as f64,
            tpot_p99_ms: tpot.get(tpot.len() * 99 / 100).copied().unwrap_or_default(),
            e2e_s: mean(|t| t.end - t.sent),
            output_tok_s: outputs.iter().sum::<usize>() as f64 / end,
            request_rate: n / end,
            step_ms: 1e3 * occupancy.step_s / occupancy.steps.max(1) as f64,
            running: occupancy.request_s / occupancy.step_s.max(1e-9) / ranks as f64,
            running_peak: occupancy.peak as f64,
        }
    }

    /// Returns the mean of several runs, and the largest of their peaks.
    pub fn mean(runs: &[Self]) -> Self {
        let mean =
            |figure: fn(&Self) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
        Self {
            ttft_s: mean(|r| r.ttft_s),
            wait_s: mean(|r| r.wait_s),
            tpot_ms: mean(|r| r.tpot_ms),
            tpot_p99_ms: mean(|r| r.tpot_p99_ms),
            e2e_s: mean(|r| r.e2e_s),
            output_tok_s: mean(|r| r.output_tok_s),
            request_rate: mean(|r| r.request_rate),
            step_ms: mean(|r| r.step_ms),
            running: mean(|r| r.running),
            running_peak: runs.iter().map(|r| r.running_peak).fold(0.0, f64::max),
        }
    }
}
