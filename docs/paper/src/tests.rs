//! What the tests of the commands share, and the one test of the default tier.

use avsg_cli::terminal::exit_status;
use avsg_cli::trace::Trace;
use avsg_testkit::tier::thorough;
use clap::Parser;

use crate::{Command, Program, contenders};

/// Returns whether a slow test is left out, and says so: the thorough tier runs it.
pub fn left_out() -> bool {
    if !thorough() {
        println!("default tier: this test is left to the thorough tier");
    }
    !thorough()
}

/// Parses a command line.
pub fn command(line: &str) -> Command {
    let words = ["avsg-research"].into_iter().chain(line.split_whitespace());
    Program::try_parse_from(words).unwrap().command
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
fn no_contender_hits_more_than_the_optimum() {
    let trace = Trace::read("../../tests/data/nomicon-4k-k256.npz").unwrap().truncated(9).unwrap();
    let rates: Vec<f64> =
        contenders::compute(&trace).unwrap().iter().map(|(_, rates)| rates[0].unwrap()).collect();
    assert!(rates.len() == 8 && rates.iter().all(|&rate| rate <= rates[7]), "{rates:?}");
}
