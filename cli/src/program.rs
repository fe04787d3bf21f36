//! The command line of `avsg`. The exit status is 0 for success, 2 for input that was refused, and 1
//! for any other failure.

use std::process::ExitCode;

use crate::command::{bench, doctor, emit, estimate, info, opp, paper, replay, serve, synth};
use avsg::Error;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

#[derive(Parser)]
#[command(
    name = "avsg",
    version,
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
    /// Writes a trace with a chosen reuse of ids between steps (the paper's synthetic workload)
    Synth(synth::Options),
    /// Measures on this machine how fast each part of the operator is and how often its table hits,
    /// beside other ways to do the same
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Estimates how long a step would take on an Ascend 910B: every figure is from a model, none is
    /// measured
    Estimate(Box<estimate::Options>),
    /// Models a serving deployment without offload, with plain offload and with AVSG: latencies, throughput
    /// and device memory; every figure is from a model, none is measured
    Serve(Box<serve::Options>),
    /// Computes the paper's tables and figures, each beside the paper's value with the difference
    Paper(paper::Options),
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
}

/// Parses the command line, runs the subcommand and returns the exit status.
pub fn run() -> ExitCode {
    let program = Program::parse();
    let outcome = match program.command {
        Command::Replay(options) => replay::run(&options),
        Command::Synth(options) => synth::run(&options),
        Command::Bench(bench) => bench::run(bench),
        Command::Estimate(options) => estimate::run(&options),
        Command::Serve(options) => serve::run(&options),
        Command::Paper(options) => paper::run(&options),
        Command::Info(options) => info::run(&options),
        Command::Doctor(options) => doctor::run(&options),
        Command::Emit(options) => emit::run(&options),
        Command::Opp(options) => opp::run(&options),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Program::command(), "avsg", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("avsg: {error:#}");
        let bad_input =
            error.chain().any(|cause| cause.is::<Error>() || cause.is::<std::io::Error>());
        ExitCode::from(if bad_input { 2 } else { 1 })
    })
}
