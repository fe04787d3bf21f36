//! `avsg`: replay top-K traces, measure, and size deployments from a terminal.

use std::process::ExitCode;

fn main() -> ExitCode {
    avsg_cli::program::run()
}
