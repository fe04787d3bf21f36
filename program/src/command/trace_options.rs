//! Options that name a recorded trace and the part of it that is taken.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use avsg::device::params::{MAX_SLOTS, MAX_TOKENS};
use clap::Args;

use super::output::{count, show_during};
use crate::checks::require;
use crate::trace::{Pick, Trace, TracePart, name_of};

/// The part of a file with axes for layers or requests. A command that has these options has the
/// argument `trace`.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct PartOptions {
    /// Layer to take, from 0, if the ids are [steps, layers, N_q, K] or [steps, layers, K]; avsg size and
    /// avsg compare also take all of them with --layer all
    #[arg(long, value_name = "N", requires = "trace", value_parser = pick)]
    layer: Option<Pick>,
    /// Request to take, from 0, if the ids are [steps, requests, N_q, K] or [steps, requests, K]; with
    /// --layer too, they are [steps, layers, requests, ..]; avsg size and avsg compare also take all of them
    /// with --request all
    #[arg(long, value_name = "N", requires = "trace", value_parser = pick)]
    request: Option<Pick>,
}

fn pick(text: &str) -> Result<Pick, String> {
    match text.parse() {
        Ok(number) => Ok(Pick::One(number)),
        Err(_) if text == "all" => Ok(Pick::All),
        Err(_) => Err("it must be a number, counted from 0, or all".to_owned()),
    }
}

/// A trace, and the part of a file that it is.
pub struct Named {
    /// Name of the file and of the part.
    pub name: String,
    /// What was taken of the file.
    pub part: TracePart,
    /// What was read.
    pub trace: Trace,
}

impl PartOptions {
    /// Reads the part of a trace, and warns on standard error if a row repeats an id.
    pub fn read(self, path: &Path) -> Result<Trace> {
        for (what, pick) in [("--layer", self.layer), ("--request", self.request)] {
            let limit = "only avsg size and avsg compare take all of them";
            require(pick != Some(Pick::All), what, "all", limit, "pass a number")?;
        }
        Ok(self.read_parts(path)?.remove(0).trace)
    }

    /// Reads every part of a file that the options take, layer by layer.
    fn read_parts(self, path: &Path) -> Result<Vec<Named>> {
        let file = name_of(path);
        let parts = show_during("read", || Trace::read_parts(path, self.layer, self.request));
        let named = |(part, trace): (TracePart, Trace)| {
            let axis = |noun, number: Option<usize>| {
                number.map_or(String::new(), |number| format!(", {noun} {number}"))
            };
            let layer = axis("layer", part.layer);
            let name = format!("{file}{layer}{}", axis("request", part.request));
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
            Named { name, part, trace }
        };
        let parts = parts.with_context(|| file.clone())?;
        Ok(parts.into_iter().map(named).collect())
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
    /// N_q that the trace must have: confirms that the axis before K has the tokens of one request in a step
    #[arg(long, value_name = "N")]
    tokens: Option<usize>,
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

    /// Reads the steps that the options select of all parts of each file, which have one N_q and one K. Returns them, and
    /// the steps of all files.
    pub fn read_all(&self) -> Result<(Vec<Named>, usize)> {
        let (mut all, mut steps) = (Vec::<Named>::new(), 0);
        for path in self.paths() {
            let before = all.len();
            for Named { name, part, trace } in self.part.read_parts(path)? {
                let trace = self.taken(&name, trace)?;
                if let Some(Named { name: first, trace: Trace { tokens, k, .. }, .. }) = all.first()
                {
                    let value = format!("{} and {} in {name}", trace.tokens, trace.k);
                    let limit = format!("they are {tokens} and {k} in {first}");
                    let is_one = (&trace.tokens, &trace.k) == (tokens, k);
                    require(is_one, "N_q and K", value, limit, "pass traces of one model")?;
                }
                all.push(Named { name, part, trace });
            }
            steps += all[before].trace.steps;
        }
        Ok((all, steps))
    }

    /// Returns whether the options take every layer of the files.
    pub fn takes_all_layers(&self) -> bool {
        self.part.layer == Some(Pick::All)
    }

    /// Warns that nothing confirms N_q of a trace. `None` if `stable`, which counts the tokens of one request,
    /// or an option does, or if there is one token.
    pub fn warning(&self, trace: &Trace) -> Option<String> {
        let tokens = trace.tokens;
        let is_stable_known = trace.stable.iter().flatten().any(|&stable| stable >= 0);
        let is_open = !is_stable_known && self.tokens.is_none() && self.part.request.is_none();
        (is_open && tokens > 1).then(|| {
            format!(
                "warning   the {tokens} rows of a step are taken for tokens of one request (N_q = {tokens}): --tokens {tokens} \
                 confirms it; for requests of a batch pass --request N or all"
            )
        })
    }

    /// Says what the axes of the files were taken for, with the options that say otherwise; `last` is the
    /// last part of a file.
    pub fn describe(&self, trace: &Trace, last: TracePart) -> String {
        let axis = |noun, pick, number: Option<usize>| match (pick, number) {
            (Some(Pick::All), Some(last)) => format!("all {}", count(last + 1, noun)),
            (_, Some(number)) => format!("{noun} {number}"),
            (_, None) => format!("one {noun} (--{noun} N or all)"),
        };
        let request = axis("request", self.part.request, last.request);
        let layer = axis("layer", self.part.layer, last.layer);
        let tokens = match trace.tokens {
            1 if self.mtp0 => "each token as a step (--mtp0)".to_owned(),
            1 => "one token per step".to_owned(),
            tokens => format!("{tokens} = tokens of one request in a step (N_q)"),
        };
        format!("{request}, {layer}, K {}, {tokens}", trace.k)
    }

    /// Returns the steps that the options take, and checks that they fit a table.
    fn taken(&self, name: &str, mut trace: Trace) -> Result<Trace> {
        let limit = format!("the axis before K of {name} has {}", trace.tokens);
        let wanted = self.tokens.unwrap_or(trace.tokens);
        require(wanted == trace.tokens, "--tokens", wanted, limit, "pass the N_q of the trace")?;
        if self.mtp0 {
            trace = trace.as_mtp0().with_context(|| name.to_owned())?;
        }
        if let Some(steps) = self.steps {
            trace = trace.truncated(steps)?;
        }
        let Trace { tokens, k, .. } = trace;
        let remedy = "pass --layer or --request (N or all) if the axis before K has layers or requests, --mtp0 to take each \
                      token as a step, or select fewer ids";
        let value = format!("{tokens} * {k} = {}", tokens * k);
        let limit = format!(
            "N_q, the tokens of one request in a step, is at most {MAX_TOKENS}, and N_q*K at most {MAX_SLOTS}, the largest S"
        );
        let fits = tokens <= MAX_TOKENS as usize && tokens * k <= MAX_SLOTS as usize;
        require(fits, "N_q*K", value, limit, remedy).with_context(|| name.to_owned())?;
        Ok(trace)
    }
}
