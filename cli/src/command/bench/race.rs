//! `avsg bench match --requests B`: whole batches, planned by vLLM-Ascend's host algorithm and by this
//! operator's engine on equal threads, in one run.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use avsg::Error;
use avsg::cpus::allowed_cpu_count;
use avsg::device::params::MAX_TOKENS;
use serde::Serialize;

use super::match_options::Options;
use super::planners::{EnginePlanner, PerTokenLru, Planner, Sizes, fill_batch, rows_of};
use super::stats::{in_turns, us_since};
use super::{Host, warn_of_skipped, with_ratio};
use crate::checks::in_range;
use crate::command::busy::{Disturbance, Watch};
use crate::command::geometry::TableKind;
use crate::command::output::{self, Cell, Page, Table};
use crate::trace::Trace;

const WARM_UP: usize = 40;
/// Steps of one planner's turn.
const BLOCK: usize = 20;
/// The pause before a turn, in which the idle threads of the last planner fall asleep.
const PAUSE: Duration = Duration::from_millis(2);

#[derive(Serialize)]
struct Report {
    machine: Host,
    workload: String,
    requests: usize,
    tokens: usize,
    threads: usize,
    disturbance: Disturbance,
    rows: Vec<Row>,
}

/// The results of one planner at one K and S.
#[derive(Serialize)]
struct Row {
    k: usize,
    slots: u32,
    planner: String,
    /// Buffers of S slots that the planner has.
    buffers: usize,
    steps: usize,
    misses_per_step: f64,
    median_us: f64,
    trimmed_mean_us: f64,
    first_decile_us: f64,
    /// The ninth decile of the times divided by their median.
    time_spread: f64,
    /// The first planner's median divided by this one's.
    median_ratio: f64,
    /// The first planner's first decile divided by this one's.
    first_decile_ratio: f64,
}

/// Runs the race of batches of `requests` requests and prints it.
pub fn run(options: &Options, requests: usize) -> Result<()> {
    let &Options { ref workload, ref slots, tokens, steps, .. } = options;
    in_range("--requests", requests, 1..=64, "choose 8, for example")?;
    in_range(
        "--tokens",
        tokens,
        1..=MAX_TOKENS as usize,
        "choose 1 without drafts, 4 with three drafts",
    )?;
    let threads = options.threads.unwrap_or_else(|| allowed_cpu_count().min(8));
    in_range("--threads", threads, 1..=64, "choose the cores of the machine")?;
    if let Some(plot) = &options.sinks.plot {
        let limit = "a race of whole batches draws no chart";
        return Err(Error::invalid("--plot", plot.display(), limit, "leave it out").into());
    }
    let all = workload.streams(requests, (steps + WARM_UP) * tokens)?;
    let sizes = Sizes { requests, tokens, threads, ids: rows_of(&all) };
    warn_of_skipped(&options.k, slots, all[0].k)?;
    let mut rows = Vec::new();
    let bar = output::progress(slots.len() * options.k.len(), "match");
    let watch = Watch::start();
    for &slots in slots {
        for &k in &options.k {
            if k <= all[0].k.min(slots as usize) {
                let traces = all.iter().map(|t| t.take_k(k)).collect::<avsg::Result<Vec<_>>>()?;
                rows.extend(measure(&traces, &sizes, slots, options)?);
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let spreads = rows.iter().map(|row: &Row| row.time_spread);
    let disturbance = watch.stop(rows.iter().map(|row| row.steps).sum(), spreads);
    let (machine, workload) = (Host::detect(), workload.name());
    let report = Report { machine, workload, requests, tokens, threads, disturbance, rows };
    options.sinks.output.write(&report, || page(&report))
}

/// Races the planners at one K and S. A table for each request needs N_q * K slots and is left out
/// if S is smaller.
fn measure(traces: &[Trace], sizes: &Sizes, slots: u32, options: &Options) -> Result<Vec<Row>> {
    let k = traces[0].k;
    let table = options.table(TableKind::Wide);
    let engine = |tokens: usize| -> Result<EnginePlanner> {
        sizes.planner(table.params(k, tokens, slots, 0)?, options.machine.choice())
    };
    let tokens = sizes.requests * sizes.tokens;
    let mut planners: Vec<(String, usize, Box<dyn Planner>)> = Vec::new();
    let lru = PerTokenLru::new(sizes, k, slots as usize)?;
    planners.push(("lru_resident_compact".into(), tokens, Box::new(lru)));
    let own = engine(1)?;
    planners.push((format!("AVSG {}, per token", own.machine()), tokens, Box::new(own)));
    if sizes.tokens > 1 && sizes.tokens * k <= slots as usize {
        let shared = engine(sizes.tokens)?;
        let name = format!("AVSG {}, per request", shared.machine());
        planners.push((name, sizes.requests, Box::new(shared)));
    }
    let steps = traces[0].steps / sizes.tokens;
    let mut misses = vec![0; planners.len()];
    let mut ids = Vec::new();
    let all = in_turns(steps.div_ceil(BLOCK), planners.len(), |round, index, times| {
        let planner = &mut planners[index].2;
        thread::sleep(PAUSE);
        for step in (round * BLOCK..steps).take(BLOCK) {
            fill_batch(traces, sizes.tokens, step, &mut ids);
            let start = Instant::now();
            planner.plan(black_box(&ids))?;
            let us = us_since(start);
            if step >= WARM_UP {
                times.push(us);
                misses[index] += planner.misses();
            }
        }
        Ok(())
    })?;
    let row = |(index, (planner, buffers, _)): (usize, (String, usize, _))| Row {
        k,
        slots,
        planner,
        buffers,
        steps: steps - WARM_UP,
        misses_per_step: misses[index] as f64 / (steps - WARM_UP) as f64,
        median_us: all[index].median,
        trimmed_mean_us: all[index].trimmed_mean,
        first_decile_us: all[index].first_decile,
        time_spread: all[index].spread,
        median_ratio: all[0].median / all[index].median,
        first_decile_ratio: all[0].first_decile / all[index].first_decile,
    };
    Ok(planners.into_iter().enumerate().map(row).collect())
}

fn page(report: &Report) -> Page {
    let mut page = Page::default();
    let Host { cpu, cores, .. } = &report.machine;
    let Report { requests, tokens, threads, .. } = report;
    page.text(format!(
        "{cpu} ({}), {}\nB = {requests}, N_q = {tokens}, {} each",
        output::count(*cores, "core"),
        report.workload,
        output::count(*threads, "thread")
    ));
    let mut table = Table::new([
        "K",
        "S",
        "planner",
        "buffers",
        "misses per step",
        "median, us",
        "first decile, us",
    ]);
    for row in &report.rows {
        table.add_row([
            row.k.into(),
            row.slots.into(),
            row.planner.clone().into(),
            row.buffers.into(),
            Cell::number(row.misses_per_step, 1),
            with_ratio(row.median_us, row.median_ratio),
            with_ratio(row.first_decile_us, row.first_decile_ratio),
        ]);
    }
    page.table(table);
    page.text(
        "(x) is how many times as fast as lru_resident_compact a planner is. \"Per token\" has a buffer for \
         each token, as lru_resident_compact has; \"per request\" has one for all tokens of a request."
    );
    page.text(format!("times of all planners: {}", report.disturbance.line()));
    page
}
