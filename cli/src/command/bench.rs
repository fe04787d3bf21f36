//! `avsg bench`: the measuring subcommands, one module each.

mod contenders;
mod disk;
mod match_options;
mod matching;
mod stats;
mod step;
mod strategies;
mod throughput;
mod transfer;
mod workload;

use std::process::ExitCode;

use anyhow::Result;
use avsg::cpu::machine::Machine;
use clap::Subcommand;
use serde::Serialize;

use super::output::Cell;
use crate::checks::require;

#[derive(Subcommand, Debug)]
pub enum Bench {
    /// Measures how long Stage One (the slots and the miss list of a step) takes on this machine,
    /// beside other ways to match, and its hit rate
    Match(match_options::Options),
    /// Measures how fast Stage Two copies on this machine, beside plain copy loops, and compares three
    /// ways to spread the misses over cores
    Transfer(transfer::Options),
    /// Measures what a decode step costs a server with many layers and requests: plans and transfers, beside
    /// vLLM-Ascend's lru_resident_compact, copies of every selected row, and reads of the tables in order
    Step(step::Options),
    /// Measures a step whose rows are on a disk, beside reads of every row and a mapped file with a page cache
    /// of the same memory
    Disk(disk::Options),
    /// Maps a file of rows and reads them step by step; `bench disk` starts it
    #[command(hide = true)]
    Map(disk::MapOptions),
}

pub fn run(bench: Bench) -> Result<ExitCode> {
    match bench {
        Bench::Match(options) => matching::run(&options)?,
        Bench::Transfer(options) => transfer::run(&options)?,
        Bench::Step(options) => step::run(&options)?,
        Bench::Disk(options) => disk::run(&options)?,
        Bench::Map(options) => disk::map(&options)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The machine that the figures were measured on.
#[derive(Serialize)]
struct Host {
    cpu: String,
    cores: usize,
    machines: Vec<String>,
}

impl Host {
    pub fn detect() -> Self {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = text.lines().find_map(|line| line.strip_prefix("model name"));
        let cpu = model.map_or(std::env::consts::ARCH, |m| m.trim_start_matches(['\t', ' ', ':']));
        Self {
            cpu: cpu.to_owned(),
            cores: avsg::cpus::allowed_cpu_count(),
            machines: Machine::all().iter().map(ToString::to_string).collect(),
        }
    }
}

/// Names, on one line of standard error, the K that are skipped: those above the K of the trace, and
/// those above an S.
///
/// # Errors
/// If no K is left.
fn warn_of_skipped(k: &[usize], slots: &[u32], trace_k: usize) -> Result<()> {
    let (fit, above): (Vec<usize>, Vec<usize>) = k.iter().partition(|&&k| k <= trace_k);
    let pairs = slots.iter().flat_map(|&s| fit.iter().map(move |&k| (k, s)));
    let (run, wide): (Vec<_>, Vec<_>) = pairs.partition(|&(k, s)| k <= s as usize);
    let value = format!("{k:?} with --slots {slots:?}");
    let limit = format!("one K must be in 1..={trace_k} and at most one of the S");
    require(!run.is_empty(), "--k", value, limit, "choose a smaller K or larger S")?;
    let list = |all: Vec<String>| all.join(", ");
    let mut parts = Vec::new();
    if !above.is_empty() {
        let above = list(above.iter().map(usize::to_string).collect());
        parts.push(format!("K = {above}, because the trace has {trace_k} ids per token"));
    }
    if !wide.is_empty() {
        let wide = wide.iter().map(|(k, s)| format!("K = {k} with S = {s}"));
        parts.push(format!("{}, because K is above S", list(wide.collect())));
    }
    if !parts.is_empty() {
        eprintln!("skipped: {}", parts.join("; "));
    }
    Ok(())
}

/// Formats a number with two decimals below 10, one below 100 and none above: 0.12, 12.3, 1234.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Returns a cell with a number as [`short`] formats it.
fn number(value: f64) -> Cell {
    Cell::shown(value, short(value))
}

/// Returns a cell with a time, and for readers a ratio behind it.
fn with_ratio(us: f64, ratio: f64) -> Cell {
    Cell::shown(us, format!("{} ({}x)", short(us), short(ratio)))
}
