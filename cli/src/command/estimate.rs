//! `avsg estimate`: what the kernels would take on an Ascend 910B. A model, not a measurement.

mod constants;
mod count;
mod ours;
mod paper;
mod phase;
mod points;
mod report;
mod show;
mod stage_two;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::synth::Synth;
use crate::trace::{MAX_ID, Trace};
use anyhow::Result;
use avsg::Error;
use avsg::device::params::{Lifetime, Params};

use super::geometry::{RowOptions, TableKind, TableOptions};
use super::output;
use constants::Constants;

/// What to estimate.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The model counts what each step of the trace does, by replaying the recorded kernel, and \
                        prices it with constants of which some are measured by others and some assumed; see \
                        them with --constants. All its figures are a model's, not measured.\n\n\
                        Start with:\n  avsg estimate\n  \
                        avsg estimate tests/data/nomicon-4k-k256.npz --slots 1024\n  \
                        avsg estimate --hit-rate 97 --soc ascend910b1 --set gather=0.5"
)]
pub struct Options {
    /// Recorded trace, .npy or .npz; every token of it is taken as a step of its own (MTP-0).
    /// Without it: the paper's synthetic workload, or with --hit-rate one with that share of hits
    #[arg(value_name = "TRACE")]
    trace: Option<PathBuf>,
    /// Without a trace: percent of the ids that the step before selected; the others are new
    #[arg(long, value_name = "PERCENT", conflicts_with = "trace")]
    hit_rate: Option<f64>,
    /// Which chip
    #[arg(long, default_value = "ascend910b3")]
    soc: String,
    /// Ids of a token [default: the trace's, else 2048]; from a trace with more, that many are kept
    #[arg(long, value_name = "K")]
    k: Option<usize>,
    /// Slots of the device buffer
    #[arg(long, value_name = "S", default_value_t = 8192)]
    slots: u32,
    #[command(flatten)]
    table: TableOptions,
    #[command(flatten)]
    rows: RowOptions,
    /// Rows per block of the host's block table, 0: a row's number is its id
    #[arg(long, value_name = "N", default_value_t = 0)]
    page: u32,
    /// Requests of a batch, all alike; those above the cores are matched in turns
    #[arg(long, value_name = "B", default_value_t = 1)]
    requests: usize,
    /// Steps that are counted
    #[arg(long, value_name = "N", default_value_t = 32)]
    steps: usize,
    /// Steps before them, which fill the buffer
    #[arg(long, value_name = "N", default_value_t = 48)]
    warm: usize,
    /// Another value for a constant; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Leave the paper's figures out, which take most of the time
    #[arg(long)]
    no_points: bool,
    /// List the constants, with range and source, and stop
    #[arg(long)]
    constants: bool,
    /// Write the results as JSON to this file, - for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs it.
pub fn run(options: &Options) -> Result<ExitCode> {
    let constants = options.set.iter().try_fold(Constants::default(), |c, set| c.with(set))?;
    if options.constants {
        let used = report::constants_used(&constants);
        give(options, &used, |used| show::constants(used))?;
        return Ok(ExitCode::SUCCESS);
    }
    let soc = super::soc::named(&options.soc)?;
    for (what, n) in [("--requests", options.requests), ("--steps", options.steps)] {
        if n == 0 {
            return Err(Error::invalid(what, 0, "it must be at least 1", "ask for one").into());
        }
    }
    let trace = load(options)?;
    let params = params(options, trace.k)?;
    let report = report::run(options, &report::Inputs { constants, soc, trace, params })?;
    give(options, &report, show::report)?;
    Ok(ExitCode::SUCCESS)
}

/// The selections, one token a step.
fn load(options: &Options) -> Result<Trace> {
    let steps = options.warm + options.steps;
    let trace = match (&options.trace, options.hit_rate) {
        (Some(path), _) => Trace::read(path)?.as_mtp0().truncated(steps)?.shuffled(1),
        (None, None) => return paper::workload(options.k.unwrap_or(2048), steps),
        (None, Some(percent)) => {
            if !(0.0..=100.0).contains(&percent) {
                let limit = "it is a percentage from 0 to 100";
                return Err(Error::invalid("--hit-rate", percent, limit, "pass 93").into());
            }
            let k = options.k.unwrap_or(2048);
            let (gamma, context) = (percent / 100.0, MAX_ID as usize + 1);
            return Synth { gamma, mu: 0.0, k, steps, seed: 1, context }
                .trace()
                .map_err(Into::into);
        }
    };
    match options.k {
        Some(k) if k != trace.k => Ok(trace.take_k(k)?),
        _ => Ok(trace),
    }
}

/// The geometry; what fits UB is two links per slot and seven retries, so that is the default here.
fn params(options: &Options, k: usize) -> Result<Params> {
    let mut table = options.table.clone();
    if table.table == TableKind::Wide && table.spread.is_none() {
        table.spread = Some(2);
    }
    table.params(k, 1, options.slots, options.page)
}

/// Our table for a geometry of the paper's: two links, the lifetimes that are cheapest to refresh.
fn wide(k: usize, slots: u32) -> Params {
    let lifetime = Lifetime::Constant(127);
    let k = u32::try_from(k).unwrap_or(u32::MAX);
    Params { spread: 2, retries: 7, lifetime, ..Params::wide(k, 1, slots) }
}

/// Bytes of a row's segments.
fn segments(options: &Options) -> Result<Vec<usize>> {
    options.rows.format()?;
    let RowOptions { row_bytes, segments } = &options.rows;
    Ok(if segments.is_empty() { vec![*row_bytes] } else { segments.clone() })
}

/// Prints a result, unless standard output is for JSON alone, and writes its JSON.
fn give<T: serde::Serialize>(options: &Options, result: &T, print: impl Fn(&T)) -> Result<()> {
    let to = options.json.as_deref();
    if !output::is_stdout(to) {
        print(result);
    }
    to.map_or(Ok(()), |to| output::json(to, result))
}
