//! The program `avsg-research`: compares AVSG with the figures of its paper, and with models of a
//! device and of a cluster.

mod contenders;
mod estimate;
mod gpu;
mod hits;
mod lifetime;
mod paper;
mod published;
mod reuse;
mod serving;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::Result;
use avsg_cli::terminal;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "avsg-research",
    version,
    about = "Compares AVSG with the figures of its paper, and with models of a device and of a cluster"
)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Estimates how long a step would take on an Ascend 910B: every figure is from a model, none is
    /// measured
    Estimate(Box<estimate::Options>),
    /// Computes the paper's tables and figures, each beside the paper's value with the difference
    Paper(paper::Options),
    /// Computes the hit rates of the tables on the paper's synthetic workload, beside exact LRU, Belady's
    /// optimum and the paper's figures
    Reuse(reuse::Options),
    /// Computes how the hit rate depends on the lifetime rule, beside exact LRU, Belady's optimum and the
    /// paper's figures
    Lifetime(lifetime::Options),
    /// Computes the hit rates of policies that AVSG does not have, on a recorded trace
    Contenders(contenders::Options),
    /// Measures the kernels for GPUs on a machine that has one
    Gpu(gpu::Options),
}

impl Command {
    fn run(self) -> Result<()> {
        match self {
            Self::Estimate(options) => estimate::run(&options),
            Self::Paper(options) => paper::run(&options),
            Self::Reuse(options) => reuse::run(&options),
            Self::Lifetime(options) => lifetime::run(&options),
            Self::Contenders(options) => contenders::run(&options),
            Self::Gpu(options) => gpu::run(&options),
        }
    }
}

fn main() -> ExitCode {
    let program: Program = match terminal::parse() {
        Ok(program) => program,
        Err(status) => return status,
    };
    match program.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(terminal::exit_status(&error)),
    }
}
