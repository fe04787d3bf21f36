//! Options that name a recorded trace and the part of it that is taken.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use avsg::device::params::{MAX_SLOTS, MAX_TOKENS};
use clap::Args;

use super::output::{count, show_during};
use crate::checks::require;
use crate::trace::{Part, Trace, name_of};

/// The part of a file with axes for layers or requests. A command that has these options has the
/// argument `trace`.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct PartOptions {
    /// Layer to take, from 0, if the ids are [steps, layers, N_q, K] or [steps, layers, K]; avsg size and
    /// avsg compare also take all of them with --layer all
    #[arg(long, value_name = "N", requires = "trace", value_parser = layer)]
    layer: Option<Layer>,
    /// Request to take, from 0, if the ids are [steps, requests, N_q, K] or [steps, requests, K]; with
    /// --layer too, they are [steps, layers, requests, ..]
    #[arg(long, value_name = "N", requires = "trace")]
    request: Option<usize>,
}

/// The layers that are taken of a file with an axis for them.
#[derive(Clone, Copy, Debug)]
enum Layer {
    One(usize),
    All,
}

fn layer(text: &str) -> Result<Layer, String> {
    match text.parse() {
        Ok(layer) => Ok(Layer::One(layer)),
        Err(_) if text == "all" => Ok(Layer::All),
        Err(_) => Err("it must be a layer, counted from 0, or all".to_owned()),
    }
}

impl PartOptions {
    /// Reads the part of a trace, and warns on standard error if a row repeats an id.
    pub fn read(self, path: &Path) -> Result<Trace> {
        let limit = "only avsg size and avsg compare take every layer";
        let is_one = !matches!(self.layer, Some(Layer::All));
        require(is_one, "--layer", "all", limit, "pass the layer's number")?;
        Ok(self.read_layers(path)?.remove(0).1)
    }

    /// Reads every layer of a trace in the order of their numbers if the options take all of them, or else
    /// the part alone; each has a name.
    fn read_layers(self, path: &Path) -> Result<Vec<(String, Trace)>> {
        let (name, request) = (name_of(path), self.request);
        let part = |layer| Ok(vec![Trace::read_part(path, Part { layer, request })?]);
        let layers = show_during("read", || match self.layer {
            Some(Layer::All) => Trace::read_layers(path, request),
            Some(Layer::One(layer)) => part(Some(layer)),
            None => part(None),
        });
        let layers = layers.with_context(|| name.clone())?.into_iter().enumerate();
        let named = |(number, trace)| match self.layer {
            Some(Layer::All) => (format!("{name}, layer {number}"), trace),
            _ => (name.clone(), trace),
        };
        let layers: Vec<_> = layers.map(named).collect();
        layers.iter().for_each(|(name, trace)| warn_of_repeats(name, trace));
        Ok(layers)
    }
}

fn warn_of_repeats(name: &str, trace: &Trace) {
    let repeats = trace.repeats();
    if let Some((step, token, id)) = repeats.first {
        eprintln!(
            "avsg: warning: {name}: {} of {} rows repeat an id ({} repeats, the first of id {id} at \
             step {step}, token {token}); a top-K selection has no repeats, and each repeat that \
             misses is a copy of its own",
            repeats.rows,
            trace.steps * trace.tokens,
            repeats.ids
        );
    }
}

/// A recorded trace, or several for the commands that take them.
#[derive(Args, Clone, Debug)]
pub struct TraceOptions {
    /// Recorded trace, - for standard input: an .npy with ids [steps, N_q, K] or [steps, K], or an .npz
    /// or .safetensors with `ids` and optionally `stable` [steps], the tokens whose KV was final before
    /// the step (-1 for unknown); integers of 32 or 64 bits, negative ids are padding. avsg size and avsg
    /// compare take several, of one N_q and K
    #[arg(value_name = "TRACE", required = true)]
    trace: Vec<PathBuf>,
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
    /// Returns the paths of the files; `-` is standard input.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.trace.iter().map(PathBuf::as_path)
    }

    /// Returns the names of the files for reports.
    pub fn name(&self) -> String {
        self.paths().map(name_of).collect::<Vec<_>>().join(", ")
    }

    /// Reads the steps that the options select of the only trace.
    pub fn read(&self) -> Result<Trace> {
        let limit = "only avsg size and avsg compare take several";
        require(self.trace.len() == 1, "TRACE", self.name(), limit, "pass one")?;
        self.taken(&self.name(), self.part.read(&self.trace[0])?)
    }

    /// Reads the steps that the options select of all traces, or of their layers, which have one N_q and one K.
    pub fn read_all(&self) -> Result<Vec<(String, Trace)>> {
        let mut all: Vec<(String, Trace)> = Vec::new();
        for path in self.paths() {
            for (name, trace) in self.part.read_layers(path)? {
                let trace = self.taken(&name, trace)?;
                if let Some((first, (tokens, k))) = all.first().map(|(n, t)| (n, (t.tokens, t.k))) {
                    let value = format!("{} and {} in {name}", trace.tokens, trace.k);
                    let limit = format!("they are {tokens} and {k} in {first}");
                    let is_one = (trace.tokens, trace.k) == (tokens, k);
                    require(is_one, "N_q and K", value, limit, "pass traces of one model")?;
                }
                all.push((name, trace));
            }
        }
        Ok(all)
    }

    /// Returns whether the options take every layer of the files.
    pub fn takes_all_layers(&self) -> bool {
        matches!(self.part.layer, Some(Layer::All))
    }

    /// Says what the axes of the files were taken for, with the options that say otherwise; `trace` is the
    /// first of `traces`.
    pub fn describe(&self, trace: &Trace, traces: usize) -> String {
        let PartOptions { layer, request } = self.part;
        let layer = match layer {
            Some(Layer::All) => format!("all {}", count(traces / self.trace.len(), "layer")),
            Some(Layer::One(number)) => format!("layer {number}"),
            None => "one layer (--layer N or all)".to_owned(),
        };
        let request = request.map(|number| format!("request {number}"));
        let request = request.unwrap_or_else(|| "one request (--request N)".to_owned());
        let tokens = match trace.tokens {
            1 if self.mtp0 => "each token as a step (--mtp0)".to_owned(),
            1 => "one token per step".to_owned(),
            tokens => format!("{tokens} = tokens of one request in a step (N_q)"),
        };
        format!("{request}, {layer}, K {}, {tokens}", trace.k)
    }

    /// Returns the steps that the options take, and checks that they fit a table.
    fn taken(&self, name: &str, mut trace: Trace) -> Result<Trace> {
        if self.mtp0 {
            trace = trace.as_mtp0();
        }
        if let Some(steps) = self.steps {
            trace = trace.truncated(steps)?;
        }
        let Trace { tokens, k, .. } = trace;
        let remedy = match tokens {
            1 => "select fewer ids",
            _ => {
                "pass --layer N or --request N if the axis before K has layers or requests, or --mtp0 \
                 to take each token as a step"
            }
        };
        let limit = format!("the tokens of one request in a step are at most {MAX_TOKENS}");
        let few = require(tokens <= MAX_TOKENS as usize, "N_q", tokens, limit, remedy);
        let limit = format!("it must be at most S, and the largest S is {MAX_SLOTS}");
        let (ids, value) = (tokens * k, format!("{} ({tokens} * {k})", tokens * k));
        let fits = || require(ids <= MAX_SLOTS as usize, "N_q*K", value, limit, remedy);
        few.and_then(|()| fits()).with_context(|| name.to_owned())?;
        Ok(trace)
    }
}
