//! `avsg bench`: what is measured, each in a file of its own.

mod contenders;
mod hits;
mod lifetime;
mod matching;
mod miss_lists;
mod model;
mod reuse;
mod stats;
mod strategies;
mod throughput;
mod transfer;
mod workload;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use avsg::cpu::machine::Machine;
use clap::Subcommand;
use serde::Serialize;

/// What to measure.
#[derive(Subcommand, Debug)]
pub enum Bench {
    /// Time of Stage One (slots and misses of a step) beside other ways to match, and its hit rate
    Match(matching::Options),
    /// Stage Two: throughput beside plain copy loops, and the strategies S1, S2, S3
    Transfer(transfer::Options),
    /// Hit rates on the paper's synthetic workload, beside exact LRU and Belady's optimum
    Reuse(reuse::Options),
    /// Hit rates over the lifetime rule: constants L and frequency decay factors
    Lifetime(lifetime::Options),
}

/// Runs one of them.
pub fn run(bench: Bench) -> Result<ExitCode> {
    match bench {
        Bench::Match(options) => matching::run(&options)?,
        Bench::Transfer(options) => transfer::run(&options)?,
        Bench::Reuse(options) => reuse::run(&options)?,
        Bench::Lifetime(options) => lifetime::run(&options)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The machine that figures come from.
#[derive(Serialize)]
struct Host {
    cpu: String,
    cores: usize,
    /// Vector machines that the CPU has.
    machines: Vec<String>,
}

impl Host {
    fn here() -> Self {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = text.lines().find_map(|line| line.strip_prefix("model name"));
        let cpu = model.map_or(std::env::consts::ARCH, |m| m.trim_start_matches(['\t', ' ', ':']));
        Self {
            cpu: cpu.to_owned(),
            cores: avsg::cpus::allowed_cpus().len().max(1),
            machines: Machine::all().iter().map(ToString::to_string).collect(),
        }
    }
}

/// The directory for charts, made if it is not there.
fn folder(plot: &Path) -> Result<&Path> {
    std::fs::create_dir_all(plot).with_context(|| format!("making {}", plot.display()))?;
    Ok(plot)
}

/// A number that is shown with as many digits as it deserves: 0.123, 12.3, 1234.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
