//! A discrete-event model of the cluster of the paper's serving table; nothing of it is measured.
//!
//! Its constants agree with nine of the paper's figures for No Offload and KV Offload. They say nothing
//! about another cluster, and the time of Stage One is that of the paper's kernel at K = 2048.

pub mod simulation;
#[cfg(test)]
mod tests;

use avsg_cli::synth::normal;
use avsg_testkit::splitmix::{SplitMix64, mix};

/// Where the KV rows are, and what a decode step moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// All KV rows are in device memory.
    NoOffload,
    /// All KV rows are in host memory, and each step copies every selected row.
    KvOffload,
    /// All KV rows are in host memory, and each step copies the rows that the device buffer lacks.
    Avsg,
}

impl Setting {
    /// The settings in the paper's order.
    pub const ALL: [Self; 3] = [Self::NoOffload, Self::KvOffload, Self::Avsg];
}

/// Layers with KV rows: those of GLM-5.2 with one MTP layer.
const LAYERS: f64 = 79.0;
/// K and S.
const K: f64 = 2048.0;
const SLOTS: f64 = 8192.0;
/// Bytes of a KV row, and of the index key of a token, which stays on the device, in one layer.
const ROW_BYTES: f64 = 1152.0;
const INDEX_BYTES: f64 = 256.0;
/// Device memory of a rank in bytes, and the part of it that holds neither KV rows nor index keys. The
/// part is fitted to the paper's HBM of No Offload.
pub const HBM: f64 = 64e9;
pub const WEIGHTS: f64 = 42.56e9;
/// Percent of the selected rows that the device buffer holds, as the paper measured it.
const HIT_RATE: f64 = 94.83;
/// Milliseconds of Stage One per token and layer: the paper's 101.27 us of a whole kernel (appendix
/// "Max Lifetime Ablation") without the 4.26 us that the model of transfers has for its misses.
const MATCH_MS: f64 = 0.097;

/// A cluster with instances for prefill, and one instance for decode whose ranks step together.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Prefill instances, each of which takes one prompt at a time.
    pub prefill_instances: usize,
    /// Milliseconds of prefill per 1000 prompt tokens.
    pub prefill_ms: f64,
    /// Seconds from the reservation of a rank's memory to the first decode step of the request: the KV
    /// rows travel from the prefill instance.
    pub handoff_s: f64,
    /// Data-parallel ranks, each with device memory and a link of its own.
    pub ranks: usize,
    /// Tokens that a rank has memory for without offload and with it.
    pub kv_tokens: [usize; 2],
    /// N_q, the tokens of a request in one step (draft tokens + 1).
    pub tokens: usize,
    /// Probability that a draft token is accepted if all drafts before it are.
    pub acceptance: f64,
    /// Milliseconds of a decode step without offload.
    pub step_ms: f64,
    /// Bandwidth of a rank's link to host memory while all ranks copy, in GB/s.
    pub link_gbs: f64,
    /// Number of requests.
    pub requests: usize,
    /// Mean number of prompt tokens.
    pub prompt: f64,
    /// Standard deviation of the prompt length divided by its mean.
    pub prompt_cv: f64,
    /// Mean number of output tokens.
    pub output: f64,
    /// Standard deviation of the output length divided by its mean.
    pub output_cv: f64,
    /// Largest number of output tokens.
    pub max_output: usize,
    /// Largest number of prompt and output tokens of a request together.
    pub max_context: usize,
    /// Requests that are under way at most; further requests wait at the client.
    pub concurrency: usize,
    /// Requests per second that clients send, with exponential intervals.
    pub rate: f64,
}

impl Cluster {
    /// The paper's cluster and load. The paper states the instances, the ranks, the tokens of memory, N_q,
    /// and the requests. Fitted to its figures, one to one: `step_ms` to TPOT and `prompt_cv` to tok/s of
    /// No Offload; `link_gbs` to TPOT, `prefill_ms` to TTFT, `handoff_s` to E2E and `output_cv` to tok/s of
    /// KV Offload; `output` to tok/s divided by requests per second of both. The acceptance, the mean
    /// prompt, the limits of the lengths and the clients are assumed.
    pub const PAPER: Self = Self {
        prefill_instances: 5,
        prefill_ms: 110.3,
        handoff_s: 13.4,
        ranks: 16,
        kv_tokens: [145_536, 762_496],
        tokens: 4,
        acceptance: 0.7,
        step_ms: 108.0,
        link_gbs: 30.2,
        requests: 2000,
        prompt: 48_000.0,
        prompt_cv: 0.5,
        output: 1101.0,
        output_cv: 2.67,
        max_output: 32_768,
        max_context: 131_072,
        concurrency: 64,
        rate: 1.0,
    };

    /// Returns the tokens that a rank has memory for.
    pub fn capacity(&self, setting: Setting) -> usize {
        self.kv_tokens[usize::from(setting != Setting::NoOffload)]
    }

    /// Returns the milliseconds of a decode step whose busiest rank runs `busiest` requests, at most as
    /// many as it has cores.
    pub fn step_ms(&self, setting: Setting, busiest: usize) -> f64 {
        let rows = self.tokens as f64 * K * LAYERS * busiest as f64;
        let transfer = rows * ROW_BYTES / (self.link_gbs * 1e6);
        let matching = self.tokens as f64 * LAYERS * MATCH_MS;
        self.step_ms
            + match setting {
                Setting::NoOffload => 0.0,
                Setting::KvOffload => transfer,
                Setting::Avsg => matching + transfer * (1.0 - HIT_RATE / 100.0),
            }
    }

    /// Returns the device memory of a rank in percent, with device buffers for `running` requests.
    pub fn hbm_percent(&self, setting: Setting, running: f64) -> f64 {
        let row = if setting == Setting::NoOffload { ROW_BYTES } else { 0.0 };
        let buffers = if setting == Setting::Avsg { SLOTS * ROW_BYTES * running } else { 0.0 };
        let tokens = self.capacity(setting) as f64 * (row + INDEX_BYTES);
        100.0 * (WEIGHTS + LAYERS * (tokens + buffers)) / HBM
    }
}

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
