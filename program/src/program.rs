//! The command line of `avsg`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::command::{bench, compare, doctor, emit, info, opp, replay, size, synth};
use crate::{VERSION, output_file, terminal};
use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

#[derive(Parser)]
#[command(
    name = "avsg",
    version = VERSION,
    about = "Gathers the KV rows that a top-K indexer selects from host memory into a small device buffer",
    after_help = "Start with:\n  avsg replay tests/data/nomicon-4k-k256.npz --slots 1024\n  \
                  avsg info --k 2048 --slots 8192 --layers 78"
)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Shows how many rows the operator copies on a recorded top-K trace and how long a step takes,
    /// and checks every byte of every returned row
    Replay(Box<replay::Options>),
    /// Computes how many slots a recorded top-K trace needs: hit rates and bytes over S, and the least S
    /// for a wanted hit rate or a wanted time per token
    Size(Box<size::Options>),
    /// Computes the hit rates of every lifetime rule on a recorded top-K trace, beside no buffer, exact LRU
    /// and Belady's optimum, and says which rule to take
    Compare(compare::Options),
    /// Writes a trace with a chosen reuse of ids between steps (the paper's synthetic workload)
    Synth(synth::Options),
    /// Measures on this machine how fast each part of the operator is, beside other ways to do the same
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Computes how much device and host memory a deployment needs, and whether it fits this machine
    Info(info::Options),
    /// Measures what the documentation of an Ascend device leaves open: its bandwidths, its costs and
    /// its behaviour
    Doctor(doctor::Options),
    /// Writes the AscendC kernels of a geometry, and shows how much unified buffer each of them needs
    Emit(emit::Options),
    /// Writes a custom operator project with the kernels of a geometry, which CANN builds into a package
    Opp(opp::Options),
    /// Prints a completion script for a shell
    Completions {
        /// Shell that the script is for
        shell: Shell,
    },
    /// Writes the manual pages of the program and of every subcommand
    Man {
        /// Directory of the pages, which is created if it does not exist
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

/// Parses the command line, runs the subcommand and returns the exit status.
pub fn run() -> ExitCode {
    let program: Program = match terminal::parse() {
        Ok(program) => program,
        Err(status) => return status,
    };
    let done = |outcome: Result<()>| outcome.map(|()| ExitCode::SUCCESS);
    let outcome = match program.command {
        Command::Replay(options) => replay::run(&options),
        Command::Size(options) => size::run(&options),
        Command::Compare(options) => done(compare::run(&options)),
        Command::Synth(options) => done(synth::run(&options)),
        Command::Bench(bench) => done(bench::run(bench)),
        Command::Info(options) => done(info::run(&options)),
        Command::Doctor(options) => doctor::run(&options),
        Command::Emit(options) => done(emit::run(&options)),
        Command::Opp(options) => done(opp::run(&options)),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Program::command(), "avsg", &mut script);
            done(output_file::to_stdout(&script).map_err(Into::into))
        }
        Command::Man { dir } => done(man(&dir)),
    };
    outcome.unwrap_or_else(|error| ExitCode::from(terminal::exit_status(&error)))
}

/// Writes a manual page for the program and one for every subcommand that is not hidden: `avsg.1`,
/// `avsg-replay.1` and so on.
fn man(dir: &Path) -> Result<()> {
    output_file::folder(dir)?;
    clap_mangen::generate_to(Program::command(), dir)?;
    let written = format!("the pages were written to {}\n", dir.display());
    Ok(output_file::to_stdout(written.as_bytes())?)
}
