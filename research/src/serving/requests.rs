//! The requests of a run: when each arrives, and how long its prompt and its output are.

use avsg_cli::synth::normal;
use avsg_testkit::splitmix::{SplitMix64, mix};

use super::cluster::Cluster;

/// A request. Times are nanoseconds since the start of the run.
#[derive(Clone, Debug)]
pub struct Request {
    /// Number of prompt tokens.
    pub prompt: usize,
    /// Number of output tokens.
    pub output: usize,
    /// When the client wants to send the request.
    pub arrival: u64,
    /// Decides which draft tokens are accepted.
    pub drafts: SplitMix64,
}

/// Returns the nanoseconds of a number of seconds.
pub fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Draws the requests of a run.
pub fn draw(load: &Cluster, seed: u64) -> Vec<Request> {
    let [mut lengths, mut gaps] = [seed, mix(seed)].map(SplitMix64::new);
    let longest = load.max_output.min(load.max_context - 1) as f64;
    let outputs = log_normal(&mut lengths, load.requests, load.output, load.output_cv, |_| longest);
    let room = |i: usize| load.max_context as f64 - outputs[i];
    let prompts = log_normal(&mut lengths, load.requests, load.prompt, load.prompt_cv, room);
    let mut now = 0.0;
    let request = |(at, (&prompt, &output)): (usize, (&f64, &f64))| {
        now -= libm::log(gaps.unit()) / load.rate;
        let (prompt, output) = (prompt as usize, output as usize);
        let drafts = SplitMix64::new(mix(seed ^ mix(at as u64)));
        Request { prompt, output, arrival: nanoseconds(now), drafts }
    };
    prompts.iter().zip(&outputs).enumerate().map(request).collect()
}

/// Draws `n` whole numbers of at least 1 from a log-normal distribution, cuts number i to `most(i)`,
/// and scales all of them so that their mean is `mean`.
fn log_normal(
    random: &mut SplitMix64,
    n: usize,
    mean: f64,
    cv: f64,
    most: impl Fn(usize) -> f64,
) -> Vec<f64> {
    let sigma = libm::sqrt(libm::log(1.0 + cv * cv));
    let shapes: Vec<f64> = (0..n).map(|_| libm::exp(sigma * normal(random))).collect();
    let scaled = |scale: f64| {
        let cut = |(i, shape): (usize, &f64)| (shape * scale).round().clamp(1.0, most(i).max(1.0));
        shapes.iter().enumerate().map(cut).collect::<Vec<f64>>()
    };
    // The mean rises with the scale. Prompts whose outputs leave little room may not reach the mean.
    let (mut low, mut high) = (0.0, 1e3 * mean);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        let reached = scaled(middle).iter().sum::<f64>() >= mean * n as f64;
        *(if reached { &mut high } else { &mut low }) = middle;
    }
    scaled(high)
}
