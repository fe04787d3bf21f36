//! `avsg`: replay top-K traces, measure, and size deployments from a terminal.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
