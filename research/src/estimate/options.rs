//! The options of an estimate, and the inputs that they describe.

use std::path::PathBuf;

use anyhow::Result;
use avsg::Error;
use avsg::device::params::Params;
use avsg_cli::command::geometry::{RowOptions, TableKind, TableOptions};
use avsg_cli::command::output::OutputOptions;
use avsg_cli::command::soc;
use avsg_cli::command::trace_options::PartOptions;
use avsg_cli::synth::Synth;
use avsg_cli::trace::{MAX_ID, Trace};
use avsg_linker::ascend::soc::Soc;

use super::measured::Measured;
use super::paper;
use avsg_cli::constants::Constants;

/// Options of `avsg-research estimate`.
#[derive(clap::Args, Debug)]
#[command(mut_arg("spread", avsg_cli::command::geometry::spread_on_device))]
#[command(
    after_help = "The emitted kernels run on the shim, which needs a C++ compiler, and each call advances the clock \
                  of its pipe by constants of a model. Some of the constants are documented, some were measured by others and \
                  some are assumed; --constants lists them. No figure of the output is measured. Examples:\n  \
                  avsg-research estimate\n  \
                  avsg-research estimate tests/data/nomicon-4k-k256.npz --slots 1024\n  \
                  avsg-research estimate --hit-rate 97 --soc ascend910b1 --set syncall=2\n  \
                  avsg-research estimate --from doctor.json"
)]
pub struct Options {
    /// Recorded trace, .npy, .npz or .safetensors, - for standard input; every token is taken as a step
    /// of its own [default: the paper's synthetic workload with gamma 0.8, mu 0.5, K 2048 and 16384 ids
    /// of context]
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    part: PartOptions,
    /// Use a synthetic workload in which each step selects this percentage of the previous step's ids
    /// and otherwise new ids, 0 to 100
    #[arg(long, value_name = "PERCENT", conflicts_with = "trace")]
    hit_rate: Option<f64>,
    /// Chip that is modelled; an unknown name is refused with the list of known ones
    #[arg(long, value_name = "SOC", default_value = "ascend910b3")]
    soc: String,
    /// K, the ids selected per token; 1 to S; from a trace with more, the K ids with the smallest
    /// hashes are kept [default: the trace's, or 2048 without a trace]
    #[arg(long, value_name = "K")]
    k: Option<usize>,
    /// S, the slots per request and layer; a multiple of 128 up to 65536
    #[arg(long, value_name = "S", default_value_t = 8192)]
    slots: u32,
    #[command(flatten)]
    pub table: TableOptions,
    #[command(flatten)]
    rows: RowOptions,
    /// Rows per block of the host's block table; a power of two up to 65536, or 0 for no block table
    /// (a row's number is its id)
    #[arg(long, value_name = "P", default_value_t = 0)]
    page: u32,
    /// B, the requests of a batch, at least 1; all select the same ids, and requests above the chip's
    /// cores are matched in turns
    #[arg(long, value_name = "B", default_value_t = 1)]
    pub requests: usize,
    /// Steps that are timed, at least 1; if the trace has fewer steps than --warm and --steps together, its
    /// second half is timed
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub steps: usize,
    /// Steps before the timed ones, which fill the buffer; 0 or more
    #[arg(long, value_name = "N", default_value_t = 48)]
    pub warm: usize,
    /// Take the constants that a report of `avsg doctor --json FILE` measured, and show its times beside
    /// those of the model; --set replaces them
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Replace the value of a constant of the model; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Leave out the comparison with the paper's figures, which takes most of the time
    #[arg(long)]
    pub no_points: bool,
    /// List the constants of the model with their ranges and sources, and stop
    #[arg(long)]
    pub constants: bool,
    #[command(flatten)]
    pub output: OutputOptions,
}

/// The largest number of steps of a trace that is run.
const MAX_STEPS: usize = 100_000;

/// The inputs of an estimate.
pub struct Inputs {
    pub constants: Constants,
    /// The report of `avsg doctor` that gives some of the constants.
    pub measured: Option<Measured>,
    pub soc: Soc,
    /// The workload, with one token per step.
    pub trace: Trace,
    pub params: Params,
    /// Bytes of each segment of a row.
    pub segments: Vec<usize>,
}

impl Options {
    /// Returns the inputs, checked.
    pub fn inputs(&self) -> Result<Inputs> {
        let measured = self.measured()?;
        let constants = self.used_constants(measured.as_ref())?;
        let soc = soc::named(&self.soc)?;
        for (what, n) in [("--requests", self.requests), ("--steps", self.steps)] {
            if n == 0 {
                return Err(
                    Error::invalid(what, 0, "it must be at least 1", "pass 1 or more").into()
                );
            }
        }
        let trace = self.load()?;
        let params = self.params(trace.k)?;
        self.rows.format()?;
        let RowOptions { row_bytes, segments } = &self.rows;
        let segments = if segments.is_empty() { vec![*row_bytes] } else { segments.clone() };
        Ok(Inputs { constants, measured, soc, trace, params, segments })
    }

    /// Reads the report of `avsg doctor`, if one is named.
    pub fn measured(&self) -> Result<Option<Measured>> {
        self.from.as_deref().map(Measured::read).transpose()
    }

    /// Returns the constants with those of a report, and with the values that the options replace.
    pub fn used_constants(&self, measured: Option<&Measured>) -> Result<Constants> {
        let first = measured.map_or_else(Constants::default, |measured| measured.constants);
        self.set.iter().try_fold(first, |c, set| c.with(set))
    }

    /// Loads or generates the trace, with one token per step.
    fn load(&self) -> Result<Trace> {
        let steps = self.warm.saturating_add(self.steps);
        if steps > MAX_STEPS {
            let limit = format!("at most {MAX_STEPS} steps are held in memory");
            return Err(Error::invalid("--warm plus --steps", steps, limit, "pass fewer").into());
        }
        let k = self.k.unwrap_or(2048);
        let trace = match (&self.trace, self.hit_rate) {
            (Some(path), _) => self.part.read(path)?.as_mtp0().truncated(steps)?.shuffled(1),
            (None, None) => return paper::workload(k, steps),
            (None, Some(percent)) => {
                if !(0.0..=100.0).contains(&percent) {
                    let limit = "it must be a percentage from 0 to 100";
                    return Err(Error::invalid("--hit-rate", percent, limit, "pass 93").into());
                }
                let (gamma, context) = (percent / 100.0, MAX_ID as usize + 1);
                return Ok(Synth { gamma, mu: 0.0, k, steps, seed: 1, context }.trace()?);
            }
        };
        match self.k {
            Some(k) if k != trace.k => Ok(trace.take_k(k)?),
            _ => Ok(trace),
        }
    }

    /// Returns the checked geometry. The default of `wide` is two links per slot and R = 7, which fits
    /// the unified buffer.
    fn params(&self, k: usize) -> Result<Params> {
        let mut table = self.table.clone();
        if table.table == TableKind::Wide && table.spread.is_none() {
            table.spread = Some(2);
        }
        table.params(k, 1, self.slots, self.page)
    }
}
