//! The deployment that is modelled, its load, and the three settings.

use avsg::{Error, Result};
use serde::{Deserialize, Serialize};

/// Where the KV rows are, and what a decode step moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

    /// Returns the name that the paper has for the setting.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoOffload => "No Offload",
            Self::KvOffload => "KV Offload",
            Self::Avsg => "AVSG",
        }
    }
}

/// A cluster with separate instances for prefill and decode. GB are 10^9 bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deployment {
    /// Prefill instances, each of which takes one prompt at a time.
    pub prefill_instances: usize,
    /// Milliseconds of prefill per 1000 prompt tokens.
    pub prefill_ms: f64,
    /// Seconds from the reservation of a rank's memory to the first decode step of the request: the KV
    /// rows travel from the prefill instance.
    pub handoff_s: f64,
    /// Decode instances. The ranks of an instance step together.
    pub decode_instances: usize,
    /// Data-parallel ranks per decode instance, each with device memory and a link of its own.
    pub ranks: usize,
    /// Cores of a rank that match; a request takes one of them.
    pub cores: usize,
    /// Requests that a rank runs at most; 0 for no limit but its memory.
    pub batch: usize,
    /// Tokens whose KV rows and index keys a rank holds without offload.
    pub kv_tokens: usize,
    /// Tokens whose index keys a rank holds with offload.
    pub offload_kv_tokens: usize,
    /// Device memory of a rank in GB.
    pub hbm_gb: f64,
    /// Device memory of a rank in GB that holds neither KV rows nor index keys: weights, activations.
    pub weights_gb: f64,
    /// Layers with KV rows.
    pub layers: usize,
    /// K, the ids that each token selects.
    pub k: usize,
    /// N_q, the tokens of a request in one step (draft tokens + 1).
    pub tokens: usize,
    /// S, the slots per request and layer.
    pub slots: usize,
    /// Bytes of a KV row of one layer.
    pub row_bytes: usize,
    /// Bytes of the index key of a token in one layer, which stays on the device.
    pub index_bytes: usize,
    /// Milliseconds of a decode step without offload.
    pub step_ms: f64,
    /// Milliseconds that each request of the busiest rank adds to a decode step.
    pub request_ms: f64,
    /// Probability that a draft token is accepted if all drafts before it are.
    pub acceptance: f64,
    /// Bandwidth of a rank's link to host memory under load, in GB/s.
    pub link_gbs: f64,
    /// Microseconds of Stage One per token and layer.
    pub match_us: f64,
    /// Percent of the selected rows that the device buffer holds.
    pub hit_rate: f64,
}

/// The requests that clients send.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Load {
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

impl Deployment {
    /// The paper's deployment. The paper states the instances, the ranks, the tokens of memory, K, N_q, S,
    /// the bytes of a row and the hit rate. `avsg serve --calibrate` computes `prefill_ms`, `handoff_s`,
    /// `weights_gb`, `step_ms` and `link_gbs`. The layers and the index bytes are those of GLM-5.2 with
    /// one MTP layer; the memory and the tokens that the paper states agree with them. `match_us` is the
    /// paper's 101.27 us of a whole kernel (appendix "Max Lifetime Ablation") without the 4.26 us that
    /// `avsg bench transfer` models for its misses. The acceptance is assumed.
    pub const PAPER: Self = Self {
        prefill_instances: 5,
        prefill_ms: 110.3,
        handoff_s: 13.4,
        decode_instances: 1,
        ranks: 16,
        cores: 40,
        batch: 0,
        kv_tokens: 145_536,
        offload_kv_tokens: 762_496,
        hbm_gb: 64.0,
        weights_gb: 42.56,
        layers: 79,
        k: 2048,
        tokens: 4,
        slots: 8192,
        row_bytes: 1152,
        index_bytes: 256,
        step_ms: 108.0,
        request_ms: 0.0,
        acceptance: 0.7,
        link_gbs: 30.2,
        match_us: 97.0,
        hit_rate: 94.83,
    };

    /// Returns the tokens that a rank has memory for.
    pub const fn capacity(&self, setting: Setting) -> usize {
        match setting {
            Setting::NoOffload => self.kv_tokens,
            Setting::KvOffload | Setting::Avsg => self.offload_kv_tokens,
        }
    }

    /// Returns the milliseconds of a decode step whose busiest rank runs `busiest` requests.
    pub fn step_ms(&self, setting: Setting, busiest: usize) -> f64 {
        let requests = busiest as f64;
        let plain = self.step_ms + self.request_ms * requests;
        let selected = (self.tokens * self.k * self.layers * self.row_bytes) as f64 * requests;
        let transfer = selected / (self.link_gbs * 1e6);
        let turns = busiest.div_ceil(self.cores) as f64;
        let matching = (self.tokens * self.layers) as f64 * self.match_us * turns / 1e3;
        match setting {
            Setting::NoOffload => plain,
            Setting::KvOffload => plain + transfer,
            Setting::Avsg => plain + matching + transfer * (1.0 - self.hit_rate / 100.0),
        }
    }

    /// Returns the mean number of tokens that a request gains in a step.
    pub fn tokens_per_step(&self) -> f64 {
        (0..self.tokens).map(|drafts| self.acceptance.powi(drafts as i32)).sum()
    }

    /// Returns the device memory of a rank in percent, with device buffers for `running` requests.
    pub fn hbm_percent(&self, setting: Setting, running: f64) -> f64 {
        let per_token = self.layers
            * match setting {
                Setting::NoOffload => self.row_bytes + self.index_bytes,
                Setting::KvOffload | Setting::Avsg => self.index_bytes,
            };
        let buffer = match setting {
            Setting::Avsg => (self.slots * self.layers * self.row_bytes) as f64 * running,
            Setting::NoOffload | Setting::KvOffload => 0.0,
        };
        let bytes = (self.capacity(setting) * per_token) as f64 + buffer;
        100.0 * (self.weights_gb + bytes / 1e9) / self.hbm_gb
    }

    /// Refuses values that the model cannot run with.
    pub fn check(&self) -> Result<()> {
        for (what, n) in [
            ("--prefill", self.prefill_instances),
            ("--decode", self.decode_instances),
            ("--ranks", self.ranks),
            ("--cores", self.cores),
            ("--layers", self.layers),
            ("--k", self.k),
            ("--tokens", self.tokens),
        ] {
            count(what, n, 1 << 20)?;
        }
        for (what, value) in [
            ("--prefill-ms", self.prefill_ms),
            ("--step-ms", self.step_ms),
            ("--link-gbs", self.link_gbs),
            ("--hbm-gb", self.hbm_gb),
        ] {
            range(what, value, f64::MIN_POSITIVE, 1e9)?;
        }
        for (what, value) in [
            ("--handoff-s", self.handoff_s),
            ("--request-ms", self.request_ms),
            ("--match-us", self.match_us),
            ("--weights-gb", self.weights_gb),
        ] {
            range(what, value, 0.0, 1e9)?;
        }
        range("--acceptance", self.acceptance, 0.0, 1.0)?;
        range("--hit-rate", self.hit_rate, 0.0, 100.0)
    }
}

impl Load {
    /// The paper's load. `avsg serve --calibrate` computes `output` and both variations. The largest
    /// context is assumed; the paper's memory without offload is a little larger.
    pub const PAPER: Self = Self {
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

    /// Refuses values that the model cannot run with; a rank must have memory for `capacity` tokens.
    pub fn check(&self, capacity: usize) -> Result<()> {
        count("--requests", self.requests, 1 << 20)?;
        count("--concurrency", self.concurrency, 1 << 20)?;
        count("--max-output", self.max_output, 1 << 24)?;
        range("--rate", self.rate, 1e-6, 1e9)?;
        range("--prompt-cv", self.prompt_cv, 0.0, 10.0)?;
        range("--output-cv", self.output_cv, 0.0, 10.0)?;
        if self.max_context > capacity || self.max_context < 2 {
            let limit = format!("a rank holds {capacity} tokens, and a request has at least 2");
            let remedy = "lower it, or raise --kv-tokens and --offload-kv-tokens";
            return Err(Error::invalid("--max-context", self.max_context, limit, remedy));
        }
        let longest = self.max_output.min(self.max_context - 1) as f64;
        range("--output", self.output, 1.0, longest)?;
        range("--prompt", self.prompt, 1.0, self.max_context as f64 - self.output)
    }
}

fn count(what: &'static str, n: usize, most: usize) -> Result<()> {
    if (1..=most).contains(&n) {
        return Ok(());
    }
    let limit = format!("it must be 1 to {most}");
    Err(Error::invalid(what, n, limit, "choose a number in this range"))
}

fn range(what: &'static str, value: f64, low: f64, high: f64) -> Result<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    let limit = match low {
        f64::MIN_POSITIVE => format!("it must be above 0 and at most {high}"),
        _ => format!("it must be {low} to {high}"),
    };
    Err(Error::invalid(what, value, limit, "choose a number in this range"))
}
