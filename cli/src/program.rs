//! The terminal program. Exit status: 0 when everything held, 2 for bad input, 1 for anything else.

use std::process::ExitCode;

use crate::command::{bench, doctor, emit, estimate, info, opp, replay, synth};
use avsg::Error;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

#[derive(Parser)]
#[command(
    name = "avsg",
    version,
    about = "Exact sparse gather of top-K selected KV rows from host memory into a small device buffer",
    after_help = "Start with:\n  avsg replay tests/data/nomicon-4k-k256.npz --slots 1024\n  \
                  avsg info --k 2048 --slots 8192 --layers 78"
)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a recorded top-K trace through the operator and verify every byte of every returned row
    Replay(Box<replay::Options>),
    /// Write the paper's synthetic workload as a trace
    Synth(synth::Options),
    /// Measure: match, transfer, reuse, lifetime
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Estimate what the kernels would take on an Ascend 910B: a model, not a measurement
    Estimate(Box<estimate::Options>),
    /// Show the machine, and the memory that a geometry takes, before it is taken
    Info(info::Options),
    /// Examine an Ascend device and write down what nobody could look up
    Doctor(doctor::Options),
    /// Write the kernels of a geometry as AscendC, and show the memory that they use
    Emit(emit::Options),
    /// Write a custom operator package of a geometry, for CANN to build
    Opp(opp::Options),
    /// Print a shell completion script
    Completions {
        /// Which shell
        shell: Shell,
    },
}

/// Runs the program.
pub fn run() -> ExitCode {
    let program = Program::parse();
    let done = match program.command {
        Command::Replay(options) => replay::run(&options),
        Command::Synth(options) => synth::run(&options),
        Command::Bench(bench) => bench::run(bench),
        Command::Estimate(options) => estimate::run(&options),
        Command::Info(options) => info::run(&options),
        Command::Doctor(options) => doctor::run(&options),
        Command::Emit(options) => emit::run(&options),
        Command::Opp(options) => opp::run(&options),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Program::command(), "avsg", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("avsg: {error:#}");
        let bad_input =
            error.chain().any(|cause| cause.is::<Error>() || cause.is::<std::io::Error>());
        ExitCode::from(if bad_input { 2 } else { 1 })
    })
}
