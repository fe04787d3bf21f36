//! `avsg bench match`: Stage One's time beside other ways to match, on the same steps in one run.

use std::path::Path;

use crate::draw::{self, Series};
use crate::trace::Trace;
use anyhow::Result;
use avsg::Error;
use avsg::cpu::machine::Machine;
use avsg::device::params::Params;
use avsg::engine::MachineChoice;
use clap::Args;
use serde::Serialize;

use super::contenders::{Contender, line_up};
use super::stats::summary;
use super::workload::Workload;
use super::{Host, folder, hits, short};
use crate::command::geometry::{MachineKind, TableKind, TableOptions};
use crate::command::output::{self, Sinks};

/// Steps that are run and not counted: caches, branch predictors and the buffer itself are cold.
const WARM_UP: usize = 20;
/// Steps of one contender's turn: long enough that the other five's tables do not sit in its caches.
const BLOCK: usize = 25;

/// What to time.
#[derive(Args, Debug)]
#[command(
    after_help = "Every contender sees the same steps in one run, in turns of 25 steps: noise hits all alike, and\n\
                  each finds its own tables where its last step left them. Ids of a row are shuffled; K below the trace's takes the ids of least hash; the\n\
                  first 20 steps do not count. Compare ratios within one run only. Contenders:\n  \
                  median_us       this operator on the chosen machine\n  \
                  emu_us          the same kernel, one lane at a time\n  \
                  scalar_us       the same idea written by hand for a scalar core\n  \
                  dual_pointer_us buffer of the previous step, sort and two pointers\n  \
                  hashmap_lru_us  std HashMap and the lru crate\n  \
                  lru_crate_us    the lru crate alone\n\
                  hit_rate is in percent, after the first step."
)]
pub struct Options {
    #[command(flatten)]
    workload: Workload,
    /// Ids of a step; values above the trace's are skipped
    #[arg(long, value_name = "K,..", value_delimiter = ',', default_value = "256,512,1024,2048")]
    k: Vec<usize>,
    /// Slots of the buffer, powers of two; combinations with K > S are skipped
    #[arg(long, value_name = "S,..", value_delimiter = ',', default_value = "2048,8192")]
    slots: Vec<u32>,
    /// Tables
    #[arg(
        long,
        value_enum,
        value_name = "T,..",
        value_delimiter = ',',
        default_value = "paper,wide"
    )]
    table: Vec<TableKind>,
    /// Links per slot of wide: 1, 2 or 4 [default: 4]
    #[arg(long, value_name = "N")]
    spread: Option<u32>,
    /// Links examined after the first [default: 3, or 7 with spread 2]
    #[arg(long, value_name = "R")]
    retries: Option<u32>,
    /// constant:L or frequency:LAMBDA (wide only) [default: wide frequency:0.87 where K < S < 4·K, else constant:127; paper constant:16]
    #[arg(long, value_name = "RULE")]
    lifetime: Option<String>,
    /// Which vector machine
    #[arg(long, value_enum, default_value = "auto")]
    machine: MachineKind,
    /// Steps that count; fewer where the trace is shorter
    #[arg(long, value_name = "N", default_value_t = 1000)]
    steps: usize,
    #[command(flatten)]
    sinks: Sinks,
}

#[derive(Serialize)]
struct Report {
    machine: Host,
    workload: String,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    k: usize,
    slots: u32,
    table: &'static str,
    spread: u32,
    machine: String,
    steps: usize,
    hit_rate: f64,
    median_us: f64,
    trimmed_mean_us: f64,
    mean_us: f64,
    emu_us: f64,
    scalar_us: f64,
    dual_pointer_us: f64,
    hashmap_lru_us: f64,
    lru_crate_us: f64,
}

impl Options {
    fn params(&self, table: TableKind, k: usize, slots: u32) -> Result<Params> {
        // With both tables in one run, what only one of them takes is meant for that one.
        let other = table == TableKind::Paper && self.table.len() > 1;
        let frequency = self.lifetime.as_ref().is_some_and(|rule| rule.starts_with("frequency"));
        let options = TableOptions {
            table,
            spread: self.spread.filter(|_| !other),
            retries: self.retries,
            lifetime: self.lifetime.clone().filter(|_| !(other && frequency)),
            primes: None,
        };
        options.params(k, 1, slots, 0)
    }

    /// (K, S, table) that can be run, in order; the others are named on standard error.
    fn combinations(&self, trace_k: usize) -> Result<Vec<(usize, Params, &'static str)>> {
        let mut all = Vec::new();
        for &slots in &self.slots {
            for &table in &self.table {
                for &k in &self.k {
                    if k > trace_k {
                        eprintln!("skipped: K = {k}, the trace has {trace_k} ids in a row");
                    } else if k > slots as usize {
                        eprintln!("skipped: K = {k} does not fit S = {slots}");
                    } else {
                        let name = if table == TableKind::Paper { "paper" } else { "wide" };
                        all.push((k, self.params(table, k, slots)?, name));
                    }
                }
            }
        }
        if all.is_empty() {
            let value = format!("{:?} with --slots {:?}", self.k, self.slots);
            let limit = format!("every K must be 1..={trace_k} and some S at least K");
            return Err(
                Error::invalid("--k", value, limit, "choose a smaller K or larger S").into()
            );
        }
        Ok(all)
    }
}

/// Runs it.
pub fn run(options: &Options) -> Result<()> {
    if options.steps == 0 || options.steps > 1_000_000 {
        let limit = "it must be 1..=1000000";
        return Err(Error::invalid("--steps", options.steps, limit, "1000 is a good number").into());
    }
    let trace = options.workload.load(options.steps + WARM_UP)?;
    if trace.steps <= WARM_UP {
        let limit = format!("more than {WARM_UP} are needed, which warm up and do not count");
        return Err(
            Error::invalid("trace steps", trace.steps, limit, "record a longer trace").into()
        );
    }
    let combinations = options.combinations(trace.k)?;
    let bar = output::progress(combinations.len(), "match");
    let mut rows = Vec::new();
    for (k, params, table) in combinations {
        let machine = Machine::find(options.machine.choice(), &params)?;
        rows.push(measure(&trace.take_k(k)?, &params, machine, table)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let report = Report { machine: Host::here(), workload: options.workload.name(), rows };
    let json = options.sinks.json.as_deref();
    if !output::is_stdout(json) {
        print(&report);
    }
    if let Some(to) = json {
        output::json(to, &report)?;
    }
    options.sinks.plot.as_deref().map_or(Ok(()), |plot| chart(folder(plot)?, &report))
}

fn measure(trace: &Trace, params: &Params, machine: Machine, table: &'static str) -> Result<Row> {
    let emu = Machine::find(MachineChoice::Emu, params)?;
    let mut contenders = line_up(params, [machine, emu])?;
    let mut times = vec![Vec::with_capacity(trace.steps); contenders.len()];
    for (round, from) in (0..trace.steps).step_by(BLOCK).enumerate() {
        for turn in 0..contenders.len() {
            // Whoever runs first in a block pays for the ids: take turns.
            let who = (round + turn) % contenders.len();
            for step in from..trace.steps.min(from + BLOCK) {
                let time = Contender::time(&mut *contenders[who], trace.row(step, 0));
                if step >= WARM_UP {
                    times[who].push(time.as_secs_f64() * 1e6);
                }
            }
        }
    }
    let sums: Vec<_> = times.iter_mut().map(|t| summary(t)).collect();
    Ok(Row {
        k: trace.k,
        slots: params.slots,
        table,
        spread: params.spread,
        machine: machine.to_string(),
        steps: trace.steps - WARM_UP,
        hit_rate: hits::after_first(&hits::of_table(trace, params, machine)?),
        median_us: sums[0].median,
        trimmed_mean_us: sums[0].trimmed_mean,
        mean_us: sums[0].mean,
        emu_us: sums[1].median,
        scalar_us: sums[2].median,
        dual_pointer_us: sums[3].median,
        hashmap_lru_us: sums[4].median,
        lru_crate_us: sums[5].median,
    })
}

fn print(report: &Report) {
    println!("{} ({} cores), {}", report.machine.cpu, report.machine.cores, report.workload);
    let mut table = output::table([
        "K",
        "S",
        "table",
        "machine",
        "hit %",
        "median us",
        "trimmed",
        "emu",
        "scalar",
        "dual pointer",
        "HashMap+LRU",
        "LRU crate",
    ]);
    for row in &report.rows {
        let beside = |us: f64| format!("{} ({}x)", short(us), short(us / row.median_us));
        table.add_row([
            row.k.to_string(),
            row.slots.to_string(),
            row.table.to_owned(),
            row.machine.clone(),
            format!("{:.2}", row.hit_rate),
            short(row.median_us),
            short(row.trimmed_mean_us),
            beside(row.emu_us),
            beside(row.scalar_us),
            beside(row.dual_pointer_us),
            beside(row.hashmap_lru_us),
            beside(row.lru_crate_us),
        ]);
    }
    println!("{table}");
    let steps = report.rows.first().map_or(0, |row| row.steps);
    println!("medians over {steps} steps; (x) how many times slower than this operator");
}

/// Time over K, one chart for each table and S.
fn chart(folder: &Path, report: &Report) -> Result<()> {
    let mut kinds: Vec<(&str, u32)> = report.rows.iter().map(|r| (r.table, r.slots)).collect();
    kinds.dedup();
    type Column = fn(&Row) -> f64;
    let columns: [(&str, Column); 5] = [
        ("AVSG", |r| r.median_us),
        ("scalar, by hand", |r| r.scalar_us),
        ("sort + dual pointer", |r| r.dual_pointer_us),
        ("HashMap + LRU", |r| r.hashmap_lru_us),
        ("LRU crate", |r| r.lru_crate_us),
    ];
    for (table, slots) in kinds {
        let rows = || report.rows.iter().filter(|r| (r.table, r.slots) == (table, slots));
        let series = columns.map(|(name, column)| Series {
            name: name.into(),
            points: rows().map(|r| (r.k as f64, column(r))).collect(),
        });
        let title = format!("Match, {table} table, S = {slots}, {}", report.workload);
        let path = folder.join(format!("match-{table}-{slots}.svg"));
        draw::lines(path, &title, "K", "median of a step, us", &series)?;
    }
    Ok(())
}
