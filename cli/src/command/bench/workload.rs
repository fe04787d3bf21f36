//! The trace that a bench runs on: a recorded one, or the paper's synthetic workload.

use std::path::{Path, PathBuf};

use crate::command::trace_options::PartOptions;
use crate::synth::{CONTEXT, Synth};
use crate::trace::Trace;
use anyhow::Result;
use avsg::Error;
use clap::Args;

/// Synthetic steps, if no number is given.
const STEPS: usize = 1000;
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

    /// Returns the name of the workload in results.
    pub fn name(&self) -> String {
        let stem = self.trace.as_ref().and_then(|path| path.file_stem());
        stem.map_or("synthetic gamma 0.8 mu 0.5".into(), |s| s.to_string_lossy().into_owned())
    }

    /// Loads at most `steps` steps of one token each, with the ids of a token in random order; `None`
    /// takes the whole trace, or [`STEPS`] synthetic steps. An indexer's ids are not sorted, and sorted
    /// ids would make a matcher that sorts look faster.
    pub fn load(&self, steps: impl Into<Option<usize>>) -> Result<Trace> {
        let steps = steps.into().unwrap_or(if self.trace.is_some() { usize::MAX } else { STEPS });
        let trace = match &self.trace {
            Some(path) => self.part.read(path)?.as_mtp0(),
            None => {
                let (gamma, mu, k, seed) = (0.8, 0.5, 2048, 1);
                Synth { gamma, mu, k, steps, seed, context: CONTEXT }.trace()?
            }
        };
        Ok(trace.truncated(steps)?.shuffled(1))
    }

    /// Loads one trace of `rows` rows for each of `requests` requests, with the ids of a row in random
    /// order. Requests of a recorded trace begin at different rows of it and go on at its start;
    /// requests of the synthetic workload have different seeds.
    pub fn streams(&self, requests: usize, rows: usize) -> Result<Vec<Trace>> {
        let recorded = match &self.trace {
            Some(path) => Some(self.part.read(path)?.as_mtp0()),
            None => None,
        };
        let k = recorded.as_ref().map_or(2048, |trace| trace.k);
        if requests.saturating_mul(rows).saturating_mul(k) > MAX_IDS {
            let limit = format!("its batches may have {MAX_IDS} ids together");
            let value = format!("{requests} requests of {rows} rows of {k} ids");
            return Err(Error::invalid("race", value, limit, "choose fewer --steps").into());
        }
        let stream = |request: usize| -> Result<Trace> {
            let Some(trace) = &recorded else {
                let (gamma, mu, k, seed) = (0.8, 0.5, 2048, 1 + request as u64);
                let synth = Synth { gamma, mu, k, steps: rows, seed, context: CONTEXT };
                return Ok(synth.trace()?.shuffled(seed));
            };
            let first = request * trace.steps / requests;
            let ids = (first..first + rows).flat_map(|row| trace.row(row % trace.steps, 0));
            Ok(Trace::new(ids.copied().collect(), None, [rows, 1, trace.k])?
                .shuffled(1 + request as u64))
        };
        (0..requests).map(stream).collect()
    }
}
