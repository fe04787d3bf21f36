//! What the tests of the commands share, and the one test of the default tier.

use std::fs;

use avsg_cli::terminal::exit_status;
use avsg_testkit::tier::thorough;
use clap::Parser;
use serde_json::Value;

use crate::{Command, Program, estimate};

/// Returns whether a slow test is left out, and says so: the thorough tier runs it.
pub fn left_out() -> bool {
    if !thorough() {
        println!("default tier: this test is left to the thorough tier");
    }
    !thorough()
}

fn command(line: &str) -> Command {
    let words = ["avsg-research"].into_iter().chain(line.split_whitespace());
    Program::try_parse_from(words).unwrap().command
}

/// Returns the JSON of a command.
pub fn json(line: &str) -> Value {
    match command(line) {
        Command::Estimate(options) => {
            serde_json::to_value(estimate::compute(&options).unwrap()).unwrap()
        }
        Command::Paper(_) => {
            let file = tempfile::NamedTempFile::new().unwrap();
            command(&format!("{line} --json {}", file.path().display())).run().unwrap();
            serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap()
        }
    }
}

/// Checks that a command is refused with status 2 and one line that contains `names`.
pub fn refused(line: &str, names: &[&str]) {
    let error = command(line).run().unwrap_err();
    assert_eq!(exit_status(&error), 2, "{line}");
    let error = format!("{error:#}");
    assert!(!error.contains('\n'), "{line}: {error}");
    names.iter().for_each(|name| assert!(error.contains(name), "{line}: {error}"));
}

#[test]
fn every_command_gives_its_figures() {
    let estimate = json(
        "estimate ../tests/data/nomicon-4k-k256.npz --slots 1024 --steps 2 --warm 6 --no-points",
    );
    let hits = &estimate["counts"];
    assert_eq!(hits["hits"].as_f64().unwrap() + hits["misses"].as_f64().unwrap(), 256.0);
}
