//! `avsg bench`: the measuring subcommands, one module each.

mod disk;
mod matching;
mod step;
mod transfer;
mod workload;

use std::borrow::{Borrow, Cow};

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};

use super::busy::{Disturbance, Watch};
use super::output::{Table, count, progress, short};
use crate::stats::Summary;
use crate::turns::{Contender, Turns};

#[derive(Subcommand, Debug)]
pub enum Bench {
    /// Measures how long Stage One (the slots and the miss list of a token) takes on this machine,
    /// beside other ways to match
    Match(matching::Options),
    /// Measures how fast Stage Two copies on this machine, beside plain copy loops
    Transfer(transfer::Options),
    /// Measures what a decode step costs a server with many layers and requests: plans and transfers, beside
    /// vLLM-Ascend's lru_resident_compact, copies of every selected row, and reads of the tables in order
    Step(step::Options),
    /// Measures prompts and steps whose rows are on a disk, beside fio, reads of every row and a mapped file with a
    /// page cache of the same memory
    Disk(disk::Options),
}

pub fn run(bench: Bench) -> Result<()> {
    match bench {
        Bench::Match(options) => matching::run(&options),
        Bench::Transfer(options) => transfer::run(&options),
        Bench::Step(options) => step::run(&options),
        Bench::Disk(options) => disk::run(&options),
    }
}

/// Returns the machine that the figures are measured on, and its words.
fn host() -> (Value, String) {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name"));
    let cpu = model.map_or(std::env::consts::ARCH, |m| m.trim_start_matches(['\t', ' ', ':']));
    let cores = avsg::system::cpus::allowed_cpu_count();
    (json!({"cpu": cpu, "cores": cores}), format!("{cpu} ({})", count(cores, "CPU")))
}

/// Returns a table of rows of JSON: its columns with ` | ` between them, and their keys.
fn table(columns: &str, keys: &str, rows: impl IntoIterator<Item: Borrow<Value>>) -> Table {
    let mut table = Table::new(columns.split(" | "));
    for row in rows {
        table.add_row(keys.split(' ').map(|key| match &row.borrow()[key] {
            Value::String(text) => text.clone(),
            Value::Number(whole) if !whole.is_f64() => whole.to_string(),
            value => value.as_f64().map(short).unwrap_or_default(),
        }));
    }
    table
}

/// Microseconds below which a spread says nothing.
const SHORT: f64 = 1.0;

/// Lets contenders take turns. Returns the times of the parts of each, and what disturbed them.
fn race<'i>(
    what: &'static str,
    turns: &Turns,
    contenders: &mut [Contender<'_>],
    ids: impl Fn(usize) -> Cow<'i, [i32]>,
) -> Result<(Vec<Vec<Summary>>, Disturbance)> {
    let (bar, watch) = (progress(turns.total(), what), Watch::start());
    let times = turns.take(contenders, ids, |steps| bar.inc(steps as u64))?;
    drop(bar);
    let long = times.iter().flatten().filter(|us| us.p50 >= SHORT).map(Summary::spread);
    let disturbance = watch.stop(turns.steps, long);
    Ok((times, disturbance))
}
