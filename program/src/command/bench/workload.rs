//! The trace that a bench runs on: a recorded one, or the paper's synthetic workload.

use std::collections::HashSet;
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

/// The trace, and the sizes of the table that runs it.
#[derive(Args, Clone, Debug)]
pub struct Workload {
    /// Recorded trace, .npy, .npz or .safetensors, - for standard input; every token is taken as a step
    /// of its own [default: the paper's synthetic workload with gamma 0.8, mu 0.5, K 2048 and 16384 ids
    /// of context]
    #[arg(value_name = "TRACE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    part: PartOptions,
    /// K, the ids selected per token; of a trace with more, the K ids with the smallest hashes are kept
    /// [default: that of the trace]
    #[arg(long, value_name = "K")]
    k: Option<usize>,
    /// S, the slots per request and layer; a multiple of 64 up to 65536, at least N_q * K
    #[arg(long, value_name = "S", default_value_t = 8192)]
    pub slots: u32,
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
        self.cut(trace.truncated(steps)?.shuffled(1))
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
            let Some(trace) = &recorded else {
                return self.cut(synthetic(rows, seed)?.shuffled(seed));
            };
            let first = request * trace.steps / requests;
            let ids = (first..first + rows).flat_map(|row| trace.row(row % trace.steps, 0));
            self.cut(Trace::new(ids.copied().collect(), None, [rows, 1, k])?.shuffled(seed))
        };
        (0..requests).map(stream).collect()
    }

    /// Keeps K ids of each row of a trace.
    fn cut(&self, trace: Trace) -> Result<Trace> {
        Ok(if let Some(k) = self.k { trace.take_k(k)? } else { trace })
    }
}

fn synthetic(steps: usize, seed: u64) -> Result<Trace> {
    Ok(Synth { gamma: 0.8, mu: 0.5, k: K, steps, seed, context: CONTEXT }.trace()?)
}

/// Rows of a request from which its buffers are filled before the first step.
pub const HISTORY: usize = 64;

/// The requests of a batch, and what fills their buffers.
pub struct Selections<'a> {
    traces: &'a [Trace],
    tokens: usize,
    /// The ids of each request's first rows.
    histories: Vec<Vec<i32>>,
    /// Steps that select the histories.
    pub fills: usize,
}

impl<'a> Selections<'a> {
    /// Takes a trace for each request, which has `tokens` tokens in a step, for buffers of `slots` slots.
    pub fn new(traces: &'a [Trace], tokens: usize, slots: usize) -> Self {
        let histories = traces.iter().map(|trace| history(trace, slots)).collect();
        Self { traces, tokens, histories, fills: slots.div_ceil(traces[0].k) }
    }

    /// Returns the ids `[B, N_q, K]` of a step. In the first ones every token of a request selects the next K ids of
    /// its history; N_q rows of a request's trace, after its history, are the tokens of each later step.
    pub fn step(&self, step: usize) -> Vec<i32> {
        let (k, tokens) = (self.traces[0].k, self.tokens);
        let Some(step) = step.checked_sub(self.fills) else {
            let part = step * k..(step + 1) * k;
            let id = |history: &Vec<i32>, at| history.get(at).copied().unwrap_or(-1);
            let row = |history| part.clone().map(|at| id(history, at)).collect::<Vec<i32>>();
            return self.histories.iter().flat_map(|h| row(h).repeat(tokens)).collect();
        };
        let first = HISTORY + step * tokens;
        let rows = |trace| (first..first + tokens).flat_map(move |row| Trace::row(trace, row, 0));
        self.traces.iter().flat_map(rows).copied().collect()
    }
}

/// Returns at most `slots` different ids that the first [`HISTORY`] rows of a trace select, those that were
/// selected last at the end.
fn history(trace: &Trace, slots: usize) -> Vec<i32> {
    let mut seen = HashSet::new();
    let latest = (0..HISTORY).rev().flat_map(|row| trace.row(row, 0)).copied();
    let mut all: Vec<i32> = latest.filter(|&id| id >= 0 && seen.insert(id)).take(slots).collect();
    all.reverse();
    all
}
