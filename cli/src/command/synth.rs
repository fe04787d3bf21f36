//! `avsg synth`: the paper's synthetic workload as a trace.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::synth::{CONTEXT, Synth};
use anyhow::Result;

use super::output;

/// What to generate.
#[derive(clap::Args, Debug)]
#[command(after_help = "The same options give the same file on every machine. Replay it with:\n  \
                        avsg synth --gamma 0.8 --mu 0.5 --out synth.npz\n  \
                        avsg replay synth.npz --slots 8192")]
pub struct Options {
    /// Share of a step's ids that the step before selected, too
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    gamma: f64,
    /// Of the other ids, the mean share that an earlier step selected (deviation 0.01); the rest
    /// were never selected before
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    mu: f64,
    /// Ids of a step
    #[arg(long, value_name = "K", default_value_t = 2048)]
    k: usize,
    /// Steps; with 16384 ids of context the ids never selected run out after some, and the least
    /// recently used take their place
    #[arg(long, value_name = "N", default_value_t = 15)]
    steps: usize,
    /// Ids to choose from, the context length
    #[arg(long, value_name = "IDS", default_value_t = CONTEXT)]
    context: usize,
    /// Of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The trace to write
    #[arg(long, value_name = "FILE.npz")]
    out: PathBuf,
    /// Write what was generated as JSON to this file, - for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Generates and writes.
pub fn run(options: &Options) -> Result<ExitCode> {
    let &Options { gamma, mu, k, steps, seed, context, .. } = options;
    let trace = Synth { gamma, mu, k, steps, seed, context }.trace()?;
    trace.write(&options.out)?;
    let json = options.json.as_deref();
    if !output::is_stdout(json) {
        let file = options.out.display();
        println!("{file}: {steps} steps of {k} ids below {context}, gamma {gamma}, mu {mu}");
    }
    if let Some(to) = json {
        let made = serde_json::json!({
            "file": options.out, "steps": steps, "tokens": 1, "k": k, "context": context,
            "gamma": gamma, "mu": mu, "seed": seed,
        });
        output::json(to, &made)?;
    }
    Ok(ExitCode::SUCCESS)
}
