//! The trace that a bench runs on: a recorded one, or the paper's synthetic workload.

use std::path::PathBuf;

use crate::synth::{CONTEXT, Synth};
use crate::trace::Trace;
use anyhow::Result;
use clap::Args;

/// The option that names a trace.
#[derive(Args, Clone, Debug)]
pub struct Workload {
    /// Recorded trace, .npy or .npz; every token is taken as a step of its own [default: the paper's
    /// synthetic workload with gamma 0.8, mu 0.5, K 2048 and 16384 ids of context]
    #[arg(long, value_name = "TRACE")]
    trace: Option<PathBuf>,
}

impl Workload {
    /// Returns the name of the workload in results.
    pub fn name(&self) -> String {
        let stem = self.trace.as_ref().and_then(|path| path.file_stem());
        stem.map_or("synthetic gamma 0.8 mu 0.5".into(), |s| s.to_string_lossy().into_owned())
    }

    /// Loads at most `steps` steps of one token each, with the ids of a token in random order. An
    /// indexer's ids are not sorted, and sorted ids would make a matcher that sorts look faster.
    pub fn load(&self, steps: usize) -> Result<Trace> {
        let trace = match &self.trace {
            Some(path) => Trace::read(path)?.as_mtp0(),
            None => {
                let (gamma, mu, k, seed) = (0.8, 0.5, 2048, 1);
                Synth { gamma, mu, k, steps, seed, context: CONTEXT }.trace()?
            }
        };
        Ok(trace.truncated(steps)?.shuffled(1))
    }
}
