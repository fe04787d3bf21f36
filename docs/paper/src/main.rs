//! The program `avsg-research`: compares AVSG with the figures of its paper, and with policies that AVSG does not have.

mod contenders;
mod hits;
mod markdown;
mod paper;
mod published;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::Result;
use avsg_cli::{output_file, terminal};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "avsg-research",
    version,
    about = "Compares AVSG with the figures of its paper, and with policies that AVSG does not have"
)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Computes the paper's tables and figures, each beside the paper's value with the difference
    Paper(paper::Options),
    /// Computes the hit rates of policies that AVSG does not have, on a recorded trace
    Contenders(contenders::Options),
}

impl Command {
    fn run(self) -> Result<()> {
        let text = match self {
            Self::Paper(options) => paper::text(&options)?,
            Self::Contenders(options) => contenders::text(&options)?,
        };
        Ok(output_file::to_stdout(text.as_bytes())?)
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
