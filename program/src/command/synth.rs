//! `avsg synth` writes the paper's synthetic workload as a trace.

use std::path::PathBuf;

use crate::output_file;
use crate::synth::{CONTEXT, Synth};
use anyhow::Result;

use super::output::{self, Page};

#[derive(clap::Args, Debug)]
#[command(after_help = "The same options give the same ids on every machine. Example:\n  \
                        avsg synth --gamma 0.8 --mu 0.5 --out synth.npz\n  \
                        avsg replay synth.npz --slots 8192")]
pub struct Options {
    /// Share of a step's ids that the previous step selected too, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    gamma: f64,
    /// Mean share of the other ids that an earlier step selected, 0 to 1 (standard deviation 0.01);
    /// the remaining ids were never selected before
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    mu: f64,
    /// K, the ids selected per token (one token per step); 1 to the context length
    #[arg(long, value_name = "K", default_value_t = 2048)]
    k: usize,
    /// Steps to generate, at least 1; where no id is left that was never selected, the least recently
    /// used ids take their place
    #[arg(long, value_name = "N", default_value_t = 15)]
    steps: usize,
    /// Context length, the number of ids to choose from; 1 to 16777216
    #[arg(long, value_name = "IDS", default_value_t = CONTEXT)]
    context: usize,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the trace to this file; - is standard output, in place of the parameters
    #[arg(long, value_name = "FILE.npz")]
    out: PathBuf,
}

pub fn run(options: &Options) -> Result<()> {
    let &Options { gamma, mu, k, steps, seed, context, .. } = options;
    let synth = Synth { gamma, mu, k, steps, seed, context };
    synth.check()?;
    output_file::check(&options.out, [])?;
    let bar = output::progress(steps, "synth");
    let trace = synth.trace_with(|| bar.inc(1))?;
    drop(bar);
    output::show_during("write", || trace.write(&options.out))?;
    if !output_file::is_stdout(&options.out) {
        let (steps, out) = (output::count(steps, "step"), options.out.display());
        let mut page = Page::default();
        page.text(format!(
            "{steps} of {k} ids below {context}, gamma {gamma}, mu {mu}\nwritten   {out}"
        ));
        page.print()?;
    }
    Ok(())
}
