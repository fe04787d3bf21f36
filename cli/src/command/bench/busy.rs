//! `avsg bench busy`: how much longer a step takes while another process spins on every CPU.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use avsg::cpus::{allowed_cpus, restrict_thread};
use avsg::device::params::Params;
use avsg::engine::Config;
use avsg::pool::PoolConfig;
use avsg::rows::RowFormat;
use clap::Args;
use serde::Serialize;

use super::planners::{EnginePlanner, Planner as _, fill_batch, rows_of};
use super::stats::{summary, us_since};
use super::workload::Workload;
use super::{Host, number, short};
use crate::checks::at_least_1;
use crate::command::output::{self, OutputOptions, Page};
use crate::trace::Trace;

const WARM_UP: usize = 20;
/// Rounds; each times a part of the steps undisturbed, and another part disturbed.
const ROUNDS: usize = 4;
/// The time that the spinning processes get to start.
const START: Duration = Duration::from_millis(100);
/// The largest ratio of the medians that the CPU device is meant to have.
const GOAL: f64 = 2.5;

#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    workload: Workload,
    /// B, the requests of a batch
    #[arg(long, value_name = "B", default_value_t = 8)]
    requests: usize,
    /// S, the slots of each request
    #[arg(long, value_name = "S", default_value_t = 8192)]
    slots: u32,
    /// Bytes of a row
    #[arg(long, value_name = "BYTES", default_value_t = 1152)]
    row_bytes: usize,
    /// Steps to time, undisturbed and disturbed each
    #[arg(long, value_name = "N", default_value_t = 400)]
    steps: usize,
    #[command(flatten)]
    output: OutputOptions,
}

#[derive(Serialize)]
struct Report {
    machine: Host,
    workload: String,
    requests: usize,
    k: usize,
    slots: u32,
    row_bytes: usize,
    misses_per_step: f64,
    undisturbed: Times,
    disturbed: Times,
    /// The disturbed median divided by the undisturbed one.
    median_ratio: f64,
    goal: f64,
}

#[derive(Serialize)]
struct Times {
    steps: usize,
    first_decile_us: f64,
    median_us: f64,
    /// The median divided by the number of requests.
    median_per_request_us: f64,
    mean_us: f64,
    worst_us: f64,
}

impl Times {
    fn new(mut times: Vec<f64>, requests: usize) -> Self {
        let all = summary(&mut times);
        Self {
            steps: times.len(),
            first_decile_us: all.first_decile,
            median_us: all.median,
            median_per_request_us: all.median / requests as f64,
            mean_us: all.mean,
            worst_us: times.last().copied().unwrap_or_default(),
        }
    }
}

/// One process that spins on every CPU of this one. Dropping it ends them.
struct Spinners(Vec<Child>);

impl Spinners {
    fn start() -> Result<Self> {
        let exe = std::env::current_exe().context("finding this program")?;
        let mut all = Self(Vec::new());
        for cpu in allowed_cpus() {
            let mut command = Command::new(&exe);
            command.args(["bench", "spin", "--cpu", &cpu.to_string()]).stdin(Stdio::piped());
            all.0.push(command.spawn().context("starting a process that spins")?);
        }
        thread::sleep(START);
        Ok(all)
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Both fail only if the process has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[derive(Args, Debug)]
pub struct SpinOptions {
    /// The CPU that it spins on
    #[arg(long, value_name = "CPU")]
    cpu: usize,
}

/// Spins on one CPU until standard input ends, which it does if the parent ends.
pub fn spin(options: &SpinOptions) -> Result<()> {
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    restrict_thread([options.cpu])?;
    loop {
        std::hint::spin_loop();
    }
}

/// The engine, and the steps of its batches.
struct Steps {
    planner: EnginePlanner,
    traces: Vec<Trace>,
    ids: Vec<i32>,
    next: usize,
    misses: usize,
}

impl Steps {
    fn new(options: &Options) -> Result<Self> {
        let steps = 2 * options.steps + WARM_UP;
        let traces = options.workload.streams(options.requests, steps)?;
        let k = u32::try_from(traces[0].k).unwrap_or(u32::MAX);
        let config = Config::new(Params::wide(k, 1, options.slots), options.requests);
        let format = RowFormat::single(options.row_bytes)?;
        let planner = EnginePlanner::new(config, &PoolConfig::new(1, rows_of(&traces), format))?;
        Ok(Self { planner, traces, ids: Vec::new(), next: 0, misses: 0 })
    }

    /// Runs `count` steps and adds their times in microseconds.
    fn run(&mut self, count: usize, times: &mut Vec<f64>) -> Result<()> {
        for _ in 0..count {
            fill_batch(&self.traces, 1, self.next, &mut self.ids);
            self.next += 1;
            let start = Instant::now();
            self.planner.step(&self.ids)?;
            times.push(us_since(start));
            self.misses += self.planner.misses();
        }
        Ok(())
    }
}

pub fn run(options: &Options) -> Result<()> {
    let numbers = [("--requests", options.requests), ("--steps", options.steps)];
    at_least_1(&numbers, "leave it out")?;
    options.output.check(options.workload.path(), [])?;
    let mut steps = Steps::new(options)?;
    steps.run(WARM_UP, &mut Vec::new())?;
    steps.misses = 0;
    let mut times = [Vec::new(), Vec::new()];
    let share =
        |round: usize| options.steps * (round + 1) / ROUNDS - options.steps * round / ROUNDS;
    let bar = output::progress(ROUNDS, "busy");
    for round in 0..ROUNDS {
        steps.run(share(round), &mut times[0])?;
        let spinners = Spinners::start()?;
        steps.run(share(round), &mut times[1])?;
        drop(spinners);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let misses_per_step = steps.misses as f64 / (2 * options.steps) as f64;
    let [undisturbed, disturbed] = times.map(|times| Times::new(times, options.requests));
    let report = Report {
        machine: Host::detect(),
        workload: options.workload.name(),
        requests: options.requests,
        k: steps.traces[0].k,
        slots: options.slots,
        row_bytes: options.row_bytes,
        misses_per_step,
        median_ratio: disturbed.median_us / undisturbed.median_us,
        undisturbed,
        disturbed,
        goal: GOAL,
    };
    options.output.write(&report, || page(&report))
}

fn page(report: &Report) -> Page {
    let mut page = Page::default();
    let Report { requests, k, slots, row_bytes, misses_per_step, .. } = report;
    let cores = output::count(report.machine.cores, "CPU");
    page.text(format!("{} ({cores}), {}", report.machine.cpu, report.workload));
    page.text(format!(
        "B = {requests}, K = {k}, S = {slots}, rows of {row_bytes} bytes, {misses_per_step:.0} misses per step"
    ));
    let mut table = output::table([
        "step",
        "steps",
        "first decile, us",
        "median, us",
        "median per request, us",
        "mean, us",
        "worst, us",
    ]);
    let both =
        [("undisturbed", &report.undisturbed), ("a process spins on each CPU", &report.disturbed)];
    for (name, times) in both {
        table.add_row([
            name.into(),
            times.steps.into(),
            number(times.first_decile_us),
            number(times.median_us),
            number(times.median_per_request_us),
            number(times.mean_us),
            number(times.worst_us),
        ]);
    }
    page.table(table);
    let verdict = if report.median_ratio <= report.goal { "met" } else { "missed" };
    page.text(format!(
        "ratio of the medians {}, goal at most {}: {verdict}",
        short(report.median_ratio),
        short(report.goal)
    ));
    page
}
