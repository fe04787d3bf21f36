//! `avsg serve` models a serving deployment with and without offload; nothing is measured.

mod calibration;
mod decode;
mod deployment;
mod measured;
mod outcome;
mod requests;
mod show;
mod simulation;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::trace::Trace;
use anyhow::Result;
use avsg::Error;
use avsg::cpu::machine::Machine;
use avsg::device::params::Params;
use avsg::engine::MachineChoice;
use avsg::geometry;
use clap::Args;

use super::bench::hits;
use super::geometry::RowOptions;
use super::output::{self, OutputOptions};
use super::trace_options::PartOptions;
use deployment::{Deployment, Load};
use show::{Calibration, Report};

pub use deployment::Setting;
pub use measured::{Measured, published};
pub use show::Column;

/// The paper's deployment and load, whose constants are the defaults.
const DEPLOYMENT: Deployment = Deployment::PAPER;
const LOAD: Load = Load::PAPER;
/// Number of runs with other random numbers whose figures are averaged.
pub const SEEDS: u64 = 10;

/// Options of `avsg serve`.
#[derive(Args, Debug)]
#[command(
    after_help = "A discrete-event model of clients, prefill instances and decode instances; no figure of it is measured.\n\
                  The defaults are the paper's deployment. Its constants agree with the paper's figures for No Offload\n\
                  and KV Offload; the paper's figures for AVSG were not used. docs/serving.md describes the model.\n\
                  Without a change of the defaults the paper's figures are printed beside the model's. Examples:\n  \
                  avsg serve\n  \
                  avsg serve --hit-rate 88.72 --slots 4096\n  \
                  avsg serve trace.npz --slots 8192 --concurrency 128\n  \
                  avsg serve --calibrate --measured mine.json"
)]
pub struct Options {
    /// Recorded trace, as of avsg replay, whose hit rate is taken: its rows are grouped into steps of N_q tokens
    /// and replayed on the wide table
    #[arg(value_name = "TRACE", conflicts_with = "hit_rate")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    part: PartOptions,
    /// Percent of the selected rows that the device buffer holds, 0 to 100 [default: 94.83, which the
    /// paper states for S = 8192 on its requests]
    #[arg(long, value_name = "PERCENT")]
    hit_rate: Option<f64>,
    /// Prefill instances, each of which takes one prompt at a time
    #[arg(long, value_name = "N", default_value_t = DEPLOYMENT.prefill_instances)]
    prefill: usize,
    /// Milliseconds of prefill per 1000 prompt tokens
    #[arg(long, value_name = "MS", default_value_t = DEPLOYMENT.prefill_ms)]
    prefill_ms: f64,
    /// Seconds from the reservation of a rank's memory to the first decode step
    #[arg(long, value_name = "S", default_value_t = DEPLOYMENT.handoff_s)]
    handoff_s: f64,
    /// Decode instances
    #[arg(long, value_name = "N", default_value_t = DEPLOYMENT.decode_instances)]
    decode: usize,
    /// Data-parallel ranks per decode instance, which step together
    #[arg(long, value_name = "N", default_value_t = DEPLOYMENT.ranks)]
    ranks: usize,
    /// Cores of a rank that match; each request takes one
    #[arg(long, value_name = "C", default_value_t = DEPLOYMENT.cores)]
    cores: usize,
    /// Requests that a rank runs at most; 0 for no limit but its memory
    #[arg(long, value_name = "B", default_value_t = DEPLOYMENT.batch)]
    batch: usize,
    /// Tokens that a rank has memory for without offload
    #[arg(long, value_name = "N", default_value_t = DEPLOYMENT.kv_tokens)]
    kv_tokens: usize,
    /// Tokens that a rank has memory for with offload
    #[arg(long, value_name = "N", default_value_t = DEPLOYMENT.offload_kv_tokens)]
    offload_kv_tokens: usize,
    /// Device memory of a rank in GB
    #[arg(long, value_name = "GB", default_value_t = DEPLOYMENT.hbm_gb)]
    hbm_gb: f64,
    /// Device memory of a rank in GB that holds neither KV rows nor index keys
    #[arg(long, value_name = "GB", default_value_t = DEPLOYMENT.weights_gb)]
    weights_gb: f64,
    /// Layers whose KV rows are offloaded
    #[arg(long, value_name = "N", default_value_t = DEPLOYMENT.layers)]
    layers: usize,
    /// K, the ids selected per token [default: the trace's, or 2048 without a trace]
    #[arg(long, value_name = "K")]
    k: Option<usize>,
    /// N_q, the tokens per request and step (draft tokens + 1)
    #[arg(long, value_name = "N", default_value_t = DEPLOYMENT.tokens)]
    tokens: usize,
    /// S, the slots per request and layer
    #[arg(long, value_name = "S", default_value_t = DEPLOYMENT.slots)]
    slots: usize,
    #[command(flatten)]
    rows: RowOptions,
    /// Bytes of the index key of a token in one layer, which stays on the device
    #[arg(long, value_name = "BYTES", default_value_t = DEPLOYMENT.index_bytes)]
    index_bytes: usize,
    /// Milliseconds of a decode step without offload
    #[arg(long, value_name = "MS", default_value_t = DEPLOYMENT.step_ms)]
    step_ms: f64,
    /// Milliseconds that each request of the busiest rank adds to a decode step
    #[arg(long, value_name = "MS", default_value_t = DEPLOYMENT.request_ms)]
    request_ms: f64,
    /// Probability that a draft token is accepted if all drafts before it are, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = DEPLOYMENT.acceptance)]
    acceptance: f64,
    /// Bandwidth of a rank's link to host memory while all ranks copy, in GB/s
    #[arg(long, value_name = "GB/S", default_value_t = DEPLOYMENT.link_gbs)]
    link_gbs: f64,
    /// Microseconds of Stage One per token and layer
    #[arg(long, value_name = "US", default_value_t = DEPLOYMENT.match_us)]
    match_us: f64,
    /// Requests of a run
    #[arg(long, value_name = "N", default_value_t = LOAD.requests)]
    requests: usize,
    /// Mean number of prompt tokens
    #[arg(long, value_name = "N", default_value_t = LOAD.prompt)]
    prompt: f64,
    /// Standard deviation of the prompt length divided by its mean
    #[arg(long, value_name = "CV", default_value_t = LOAD.prompt_cv)]
    prompt_cv: f64,
    /// Mean number of output tokens
    #[arg(long, value_name = "N", default_value_t = LOAD.output)]
    output: f64,
    /// Standard deviation of the output length divided by its mean
    #[arg(long, value_name = "CV", default_value_t = LOAD.output_cv)]
    output_cv: f64,
    /// Largest number of output tokens
    #[arg(long, value_name = "N", default_value_t = LOAD.max_output)]
    max_output: usize,
    /// Largest number of prompt and output tokens of a request; at most what a rank has memory for
    #[arg(long, value_name = "N", default_value_t = LOAD.max_context)]
    max_context: usize,
    /// Requests under way at most; further requests wait at the client, which counts in no figure
    #[arg(long, value_name = "N", default_value_t = LOAD.concurrency)]
    concurrency: usize,
    /// Requests per second that clients want to send, with exponential intervals
    #[arg(long, value_name = "RATE", default_value_t = LOAD.rate)]
    rate: f64,
    /// Runs with other random numbers to average over, 1 to 100; the seeds are 1, 2, ..
    #[arg(long, value_name = "N", default_value_t = SEEDS)]
    seeds: u64,
    /// Measured figures to print beside the model's, in the form of cli/src/published/serving.json
    #[arg(long, value_name = "FILE.json")]
    measured: Option<PathBuf>,
    /// Compute the constants with which the model agrees with the measured figures for No Offload and
    /// KV Offload (the paper's, unless --measured names others), and run with them
    #[arg(long)]
    calibrate: bool,
    #[command(flatten)]
    results: OutputOptions,
}

/// Runs the model and prints its figures.
pub fn run(options: &Options) -> Result<ExitCode> {
    if !(1..=100).contains(&options.seeds) {
        let limit = "it must be 1..=100";
        return Err(Error::invalid("--seeds", options.seeds, limit, "choose 10").into());
    }
    let inputs = options.trace.as_deref().into_iter().chain(options.measured.as_deref());
    options.results.check(inputs, [])?;
    let report = model(options)?;
    options.results.write(&report, || show::page(&report))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the model's figures for a setting of the paper's deployment.
pub fn of_the_paper(setting: Setting) -> Column {
    column(&DEPLOYMENT, &LOAD, setting, SEEDS)
}

fn column(deployment: &Deployment, load: &Load, setting: Setting, seeds: u64) -> Column {
    let outcome = simulation::mean(deployment, load, setting, seeds);
    Column {
        setting,
        capacity_tokens: deployment.capacity(setting),
        hbm_mean_percent: deployment.hbm_percent(setting, outcome.running),
        hbm_peak_percent: deployment.hbm_percent(setting, outcome.running_peak),
        outcome,
        measured: None,
    }
}

fn model(options: &Options) -> Result<Report> {
    let (mut deployment, mut load) = (options.deployment()?, options.load());
    let is_paper = deployment == DEPLOYMENT && load == LOAD;
    let figures = match &options.measured {
        Some(path) => measured::read(path)?,
        None if is_paper || options.calibrate => published()?,
        None => Vec::new(),
    };
    let rounds = if options.calibrate { calibration::ROUNDS } else { 0 };
    let bar = output::progress(rounds + Setting::ALL.len(), "serve");
    let mut calibration = None;
    if options.calibrate {
        let calibrated =
            calibration::calibrate(&deployment, &load, &figures, options.seeds, rounds, &|| {
                bar.inc(1)
            })?;
        (deployment, load) = (calibrated.deployment, calibrated.load);
        calibration = Some(Calibration { rounds, constants: calibrated.fitted });
    }
    deployment.check()?;
    load.check(deployment.kv_tokens.min(deployment.offload_kv_tokens))?;
    let columns = Setting::ALL.map(|setting| {
        let measured = measured::of(&figures, setting).cloned();
        let modelled = column(&deployment, &load, setting, options.seeds);
        bar.inc(1);
        Column { measured, ..modelled }
    });
    bar.finish_and_clear();
    let label = show::LABEL;
    Ok(Report { label, seeds: options.seeds, deployment, load, calibration, settings: columns })
}

impl Options {
    fn deployment(&self) -> Result<Deployment> {
        let trace = match &self.trace {
            Some(path) => Some(self.part.read(path)?),
            None => None,
        };
        let k = self.k.or(trace.as_ref().map(|trace| trace.k)).unwrap_or(DEPLOYMENT.k);
        let hit_rate = match &trace {
            Some(trace) => self.hit_rate_of(trace, k)?,
            None => self.hit_rate.unwrap_or(DEPLOYMENT.hit_rate),
        };
        Ok(Deployment {
            prefill_instances: self.prefill,
            prefill_ms: self.prefill_ms,
            handoff_s: self.handoff_s,
            decode_instances: self.decode,
            ranks: self.ranks,
            cores: self.cores,
            batch: self.batch,
            kv_tokens: self.kv_tokens,
            offload_kv_tokens: self.offload_kv_tokens,
            hbm_gb: self.hbm_gb,
            weights_gb: self.weights_gb,
            layers: self.layers,
            k,
            tokens: self.tokens,
            slots: self.slots,
            row_bytes: self.rows.format()?.bytes(),
            index_bytes: self.index_bytes,
            step_ms: self.step_ms,
            request_ms: self.request_ms,
            acceptance: self.acceptance,
            link_gbs: self.link_gbs,
            match_us: self.match_us,
            hit_rate,
        })
    }

    const fn load(&self) -> Load {
        Load {
            requests: self.requests,
            prompt: self.prompt,
            prompt_cv: self.prompt_cv,
            output: self.output,
            output_cv: self.output_cv,
            max_output: self.max_output,
            max_context: self.max_context,
            concurrency: self.concurrency,
            rate: self.rate,
        }
    }

    /// Returns the hit rate of a trace on the wide table in percent, after the first step.
    fn hit_rate_of(&self, trace: &Trace, k: usize) -> Result<f64> {
        let trace = trace.take_k(k)?.in_steps_of(self.tokens)?;
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let params = Params::wide(narrow(k), narrow(self.tokens), narrow(self.slots));
        geometry::check(&params)?;
        let machine = Machine::find(MachineChoice::Auto)?;
        let steps = hits::of_table(&trace, &params, machine)?;
        if steps.iter().skip(1).all(|&(_, selected)| selected == 0) {
            let limit = "no step after the first selects an id, so there is no hit rate";
            let remedy = "record more steps, or pass --hit-rate";
            return Err(Error::invalid("trace steps", trace.steps, limit, remedy).into());
        }
        Ok(hits::after_first(&steps))
    }
}
