//! What the tests of the commands share, and the one test of the default tier.

use avsg_cli::terminal::exit_status;
use avsg_testkit::tier::thorough;
use clap::Parser;
use serde_json::Value;

use crate::serving::cluster::{Cluster, Setting};
use crate::serving::simulation::mean;
use crate::{Command, Program, contenders, estimate, lifetime, paper, reuse};

/// Returns whether a slow test is left out, and says so: the thorough tier runs it.
pub fn left_out() -> bool {
    if !thorough() {
        println!("default tier: this test is left to the thorough tier");
    }
    !thorough()
}

/// Returns whether there is a C++ compiler, which times kernels. Without one it says that the test is skipped.
pub fn has_cpp_compiler() -> bool {
    let found = avsg_sim::compiler::cpp().is_some();
    if !found {
        println!("skipped: no C++ compiler");
    }
    found
}

/// Parses a command line.
pub fn command(line: &str) -> Command {
    let words = ["avsg-research"].into_iter().chain(line.split_whitespace());
    Program::try_parse_from(words).unwrap().command
}

/// Returns the JSON of a command.
pub fn json(line: &str) -> Value {
    let value = match command(line) {
        Command::Estimate(options) => serde_json::to_value(estimate::compute(&options).unwrap()),
        Command::Reuse(options) => serde_json::to_value(reuse::compute(&options).unwrap()),
        Command::Lifetime(options) => serde_json::to_value(lifetime::compute(&options).unwrap()),
        Command::Contenders(options) => {
            serde_json::to_value(contenders::compute(&options).unwrap())
        }
        Command::Paper(_) | Command::Gpu(_) => panic!("{line} has no JSON"),
    };
    value.unwrap()
}

/// Checks that a command is refused with status 2 and one line that contains `names`.
pub fn refused(line: &str, names: &[&str]) {
    let error = command(line).run().unwrap_err();
    assert_eq!(exit_status(&error), 2, "{line}");
    let error = format!("{error:#}");
    assert!(!error.contains('\n'), "{line}: {error}");
    names.iter().for_each(|name| assert!(error.contains(name), "{line}: {error}"));
}

/// The test of the default tier: each command computes on a small input what it says.
#[test]
fn every_command_gives_its_figures() {
    let trace = "../tests/data/nomicon-4k-k256.npz";
    let number = |value: &Value| value.as_f64().unwrap();
    if has_cpp_compiler() {
        let line = format!("estimate {trace} --slots 1024 --steps 2 --warm 6 --no-points");
        let estimate = json(&line);
        let counts = &estimate["counts"];
        assert_eq!(number(&counts["hits"]) + number(&counts["misses"]), 256.0);
        // A recorded result of the model. A change of the kernel or of the model may require another one.
        let stage_one_us = number(&estimate["totals"][1]["stage_one_us"]);
        assert!((stage_one_us / 32.2 - 1.0).abs() < 0.02, "{stage_one_us}");
    }
    let Command::Paper(options) = command("paper --sections transfer") else { unreachable!() };
    let sections = paper::compute(&options).unwrap();
    assert!(sections[0].tables[0].rms(2) < 3.0, "{sections:?}");
    let tpot_ms = mean(&Cluster::PAPER, Setting::Avsg, 1).tpot_ms;
    assert!((tpot_ms / 55.0 - 1.0).abs() < 0.15, "{tpot_ms}");
    let lifetime = json(&format!("lifetime {trace} --slots 512 --steps 9"));
    assert!(number(&lifetime["scale"][0]["opt"]) >= number(&lifetime["rows"][0]["hit_rate"]));
    let contenders = json(&format!("contenders {trace} --slots 1024 --steps 9"));
    let rates = contenders["policies"].as_array().unwrap().iter();
    let rates: Vec<f64> = rates.map(|rates| number(&rates["hit_rates"][0])).collect();
    assert!(rates.len() == 8 && rates.iter().all(|&rate| rate <= rates[7]), "{contenders}");
}
