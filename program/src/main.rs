//! The program `avsg`: replays top-K traces, measures, and sizes deployments from a terminal.

use std::process::ExitCode;

fn main() -> ExitCode {
    avsg_cli::program::run()
}
