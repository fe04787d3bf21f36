//! The trace that a bench runs on: a recorded one, or the paper's synthetic workload.

use std::path::{Path, PathBuf};

use crate::checks::require;
use crate::command::trace_options::PartOptions;
use crate::synth::{CONTEXT, Synth};
use crate::trace::Trace;
use anyhow::Result;
use clap::Args;

/// K of the synthetic workload.
const K: usize = 2048;
/// The ids of all requests of a race, which are kept in 2 GiB.
const MAX_IDS: usize = 1 << 29;

/// The option that names a trace.
#[derive(Args, Clone, Debug)]
pub struct Workload {
    /// Recorded trace, .npy, .npz or .safetensors, - for standard input; every token is taken as a step
    /// of its own [default: the paper's synthetic workload with gamma 0.8, mu 0.5, K 2048 and 16384 ids
    /// of context]
    #[arg(value_name = "TRACE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    part: PartOptions,
}

impl Workload {
    /// Returns the recorded trace's file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.trace.as_deref()
    }

    pub fn name(&self) -> String {
        let stem = self.trace.as_ref().and_then(|path| path.file_stem());
        stem.map_or("synthetic gamma 0.8 mu 0.5".into(), |s| s.to_string_lossy().into_owned())
    }

    /// Returns the recorded trace with every token as a step, if there is one.
    fn recorded(&self) -> Result<Option<Trace>> {
        self.trace.as_ref().map(|path| Ok(self.part.read(path)?.as_mtp0()?)).transpose()
    }

    /// Loads at most `steps` steps of one token each, with the ids of a token in random order. An
    /// indexer's ids are not sorted, and sorted ids would make a matcher that sorts look faster.
    pub fn load(&self, steps: usize) -> Result<Trace> {
        let trace = self.recorded()?.map_or_else(|| synthetic(steps, 1), Ok)?;
        Ok(trace.truncated(steps)?.shuffled(1))
    }

    /// Loads one trace of `rows` rows for each of `requests` requests, with the ids of a row in random
    /// order. Requests of a recorded trace begin at different rows of it and go on at its start;
    /// requests of the synthetic workload have different seeds.
    pub fn streams(&self, requests: usize, rows: usize) -> Result<Vec<Trace>> {
        let recorded = self.recorded()?;
        let k = recorded.as_ref().map_or(K, |trace| trace.k);
        let value = format!("{requests} requests of {rows} rows of {k} ids");
        let limit = format!("its batches may have {MAX_IDS} ids together");
        let fits = requests.saturating_mul(rows).saturating_mul(k) <= MAX_IDS;
        require(fits, "race", value, limit, "choose fewer --steps")?;
        let stream = |request: usize| -> Result<Trace> {
            let seed = 1 + request as u64;
            let Some(trace) = &recorded else { return Ok(synthetic(rows, seed)?.shuffled(seed)) };
            let first = request * trace.steps / requests;
            let ids = (first..first + rows).flat_map(|row| trace.row(row % trace.steps, 0));
            Ok(Trace::new(ids.copied().collect(), None, [rows, 1, k])?.shuffled(seed))
        };
        (0..requests).map(stream).collect()
    }
}

fn synthetic(steps: usize, seed: u64) -> Result<Trace> {
    Ok(Synth { gamma: 0.8, mu: 0.5, k: K, steps, seed, context: CONTEXT }.trace()?)
}
