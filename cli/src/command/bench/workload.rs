//! The selections that a bench runs on: a recorded trace, or the synthetic workload.

use std::path::PathBuf;

use crate::synth::{CONTEXT, Synth};
use crate::trace::Trace;
use anyhow::Result;
use clap::Args;

/// Where the selections come from.
#[derive(Args, Clone, Debug)]
pub struct Workload {
    /// Recorded trace, .npy or .npz; every token of it is taken as a step of its own (MTP-0).
    /// Without it: the synthetic workload, gamma 0.8, mu 0.5, K 2048, 16384 ids of context
    #[arg(long, value_name = "TRACE")]
    trace: Option<PathBuf>,
}

impl Workload {
    /// What it is called in results.
    pub fn name(&self) -> String {
        let stem = self.trace.as_ref().and_then(|path| path.file_stem());
        stem.map_or("synthetic gamma 0.8 mu 0.5".into(), |s| s.to_string_lossy().into_owned())
    }

    /// At most `steps` steps of one token each, rows in random order: an indexer's rows are not
    /// sorted, and sorted ones would flatter whoever sorts.
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
