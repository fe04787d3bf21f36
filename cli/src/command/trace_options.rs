//! Options that name a recorded trace and the part of it that is taken.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::trace::{Part, Trace, name_of};

/// The part of a file with axes for layers or requests. A command that has these options has the
/// argument `trace`.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct PartOptions {
    /// Layer to take, from 0, if the ids are [steps, layers, N_q, K] or [steps, layers, K]
    #[arg(long, value_name = "N", requires = "trace")]
    layer: Option<usize>,
    /// Request to take, from 0, if the ids are [steps, requests, N_q, K] or [steps, requests, K]; with
    /// --layer too, they are [steps, layers, requests, ..]
    #[arg(long, value_name = "N", requires = "trace")]
    request: Option<usize>,
}

impl PartOptions {
    /// Reads the part of a trace, and warns on standard error if a row repeats an id.
    pub fn read(self, path: &Path) -> Result<Trace> {
        let Self { layer, request } = self;
        let trace =
            Trace::read_part(path, Part { layer, request }).with_context(|| name_of(path))?;
        let repeats = trace.repeats();
        if let Some((step, token, id)) = repeats.first {
            let warning = format!(
                "avsg: warning: {}: {} of {} rows repeat an id ({} repeats, the first of id {id} at \
                 step {step}, token {token}); a top-K selection has no repeats, and each repeat that \
                 misses is a copy of its own",
                name_of(path),
                repeats.rows,
                trace.steps * trace.tokens,
                repeats.ids
            );
            // A closed standard error leaves nobody to tell.
            let _ = writeln!(io::stderr(), "{warning}");
        }
        Ok(trace)
    }
}

/// A recorded trace.
#[derive(Args, Clone, Debug)]
pub struct TraceOptions {
    /// Recorded trace, - for standard input: an .npy with ids [steps, N_q, K] or [steps, K], or an .npz
    /// or .safetensors with `ids` and optionally `stable` [steps], the tokens whose KV was final before
    /// the step (-1 for unknown); integers of 32 or 64 bits, negative ids are padding
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    #[command(flatten)]
    part: PartOptions,
    /// Steps to take, at least 1 [default: all steps of the trace]
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// Take every token as a step of its own (no speculation)
    #[arg(long)]
    mtp0: bool,
}

impl TraceOptions {
    /// Returns the path of the trace's file; `-` is standard input.
    pub fn path(&self) -> &Path {
        &self.trace
    }

    /// Returns the name of the trace for reports.
    pub fn name(&self) -> String {
        name_of(&self.trace)
    }

    /// Reads the trace.
    pub fn read(&self) -> Result<Trace> {
        let mut trace = self.part.read(&self.trace)?;
        if self.mtp0 {
            trace = trace.as_mtp0();
        }
        Ok(match self.steps {
            Some(steps) => trace.truncated(steps)?,
            None => trace,
        })
    }
}
