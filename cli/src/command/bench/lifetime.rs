//! `avsg bench lifetime`: what the lifetime rule does to the hit rate.

use std::path::Path;

use crate::draw::{self, Series};
use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::{Lifetime, Params, Table};
use avsg::geometry;
use clap::Args;
use serde::{Deserialize, Serialize};

use super::workload::Workload;
use super::{folder, hits};
use crate::command::geometry::MachineKind;
use crate::command::output::{self, Sinks};

const CONSTANTS: [i8; 9] = [0, 1, 2, 4, 8, 16, 32, 64, 127];
const FACTORS: [f64; 7] = [0.8, 0.85, 0.87, 0.9, 0.93, 0.95, 0.96];

/// What to run.
#[derive(Args, Debug)]
#[command(
    after_help = "Constant L: a hit sets the lifetime to L, and every step takes one off; a table forgets the\n\
                        order of what is older than it can tell. Frequency LAMBDA: the lifetime is the logarithm\n\
                        of a count of uses that decays by LAMBDA a step (wide only). Hit rates are in percent,\n\
                        after the first step, beside exact LRU and Belady's optimum on the same steps. The paper states\n\
                        reuse rates for L = 1, 8 and 16 on its own requests (K = 2048, S = 8192): they stand in a column\n\
                        of their own, for the trend over L, as its requests are not public."
)]
pub struct Options {
    #[command(flatten)]
    workload: Workload,
    /// Slots of the buffer, powers of two
    #[arg(long, value_name = "S,..", value_delimiter = ',', default_value = "4096,8192")]
    slots: Vec<u32>,
    /// Ids of a step; below the trace's, the ids of least hash [default: the trace's]
    #[arg(long, value_name = "K")]
    k: Option<usize>,
    /// Steps at most
    #[arg(long, value_name = "N", default_value_t = 1000)]
    steps: usize,
    /// Which vector machine
    #[arg(long, value_enum, default_value = "auto")]
    machine: MachineKind,
    #[command(flatten)]
    sinks: Sinks,
}

#[derive(Serialize)]
struct Report {
    workload: String,
    steps: usize,
    k: usize,
    rows: Vec<Row>,
    scale: Vec<Scale>,
}

#[derive(Serialize)]
struct Row {
    slots: u32,
    table: &'static str,
    rule: &'static str,
    /// L, or lambda.
    value: f64,
    hit_rate: f64,
    /// What the paper states for this L on its own requests, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    paper: Option<f64>,
}

/// The paper's ablation (appendix "Max Lifetime Ablation").
#[derive(Deserialize)]
struct Published {
    k: usize,
    slots: u32,
    reuse: Vec<Reuse>,
}

#[derive(Deserialize)]
struct Reuse {
    l: f64,
    percent: f64,
}

impl Published {
    fn read() -> Result<Self> {
        Ok(serde_json::from_str(include_str!("../../published/lifetime.json"))?)
    }

    /// The paper's reuse rate in percent where it states one: for its table at its size.
    fn percent(&self, k: usize, params: &Params, l: f64) -> Option<f64> {
        let there = params.table != Table::Wide && (k, params.slots) == (self.k, self.slots);
        let reuse = self.reuse.iter().find(|reuse| reuse.l == l);
        reuse.filter(|_| there).map(|reuse| reuse.percent)
    }
}

#[derive(Serialize)]
struct Scale {
    slots: u32,
    lru: f64,
    opt: f64,
}

/// Every rule of a table, named.
fn rules(p: &Params) -> Vec<(&'static str, f64, Lifetime)> {
    let constants = CONSTANTS.map(|l| ("constant", f64::from(l), Lifetime::Constant(l)));
    let factor = |l| geometry::frequency(l).ok().map(|rule| ("frequency", l, rule));
    let all = constants.into_iter().chain(FACTORS.into_iter().filter_map(factor));
    // A rule that the table does not take is not part of its ablation.
    all.filter(|&(.., lifetime)| Params { lifetime, ..*p }.check().is_ok()).collect()
}

/// Runs it.
pub fn run(options: &Options) -> Result<()> {
    let trace = options.workload.load(options.steps)?;
    let trace = match options.k {
        Some(k) => trace.take_k(k)?,
        None => trace,
    };
    let k = u32::try_from(trace.k).unwrap_or(u32::MAX);
    let mut tables = Vec::new();
    for &slots in &options.slots {
        for params in [Params::paper(k, 1, slots), Params::wide(k, 1, slots)] {
            geometry::check(&params)?;
            tables.push(params);
        }
    }
    let bar = output::progress(tables.len() + options.slots.len(), "lifetime");
    let published = Published::read()?;
    let mut rows = Vec::new();
    for params in tables {
        let machine = Machine::find(options.machine.choice(), &params)?;
        let table = if params.table == Table::Wide { "wide" } else { "paper" };
        for (rule, value, lifetime) in rules(&params) {
            let steps = hits::of_table(&trace, &Params { lifetime, ..params }, machine)?;
            let hit_rate = hits::after_first(&steps);
            let paper = published.percent(trace.k, &params, value);
            rows.push(Row { slots: params.slots, table, rule, value, hit_rate, paper });
        }
        bar.inc(1);
    }
    let mut scale = Vec::new();
    for &slots in &options.slots {
        let [lru, opt] = hits::of_scale(&trace, slots as usize)?.map(|s| hits::after_first(&s));
        scale.push(Scale { slots, lru, opt });
        bar.inc(1);
    }
    bar.finish_and_clear();
    let workload = options.workload.name();
    let report = Report { workload, steps: trace.steps, k: trace.k, rows, scale };
    let json = options.sinks.json.as_deref();
    if !output::is_stdout(json) {
        print(&report);
    }
    if let Some(to) = json {
        output::json(to, &report)?;
    }
    options.sinks.plot.as_deref().map_or(Ok(()), |plot| chart(folder(plot)?, &report))
}

fn print(report: &Report) {
    let Report { workload, steps, k, .. } = report;
    println!("hit rate in percent after the first step; {workload}, {steps} steps, K = {k}");
    let mut table = output::table([
        "S",
        "table",
        "lifetime",
        "hit %",
        "beside LRU",
        "beside OPT",
        "the paper, its requests",
    ]);
    for scale in &report.scale {
        for row in report.rows.iter().filter(|row| row.slots == scale.slots) {
            table.add_row([
                row.slots.to_string(),
                row.table.to_owned(),
                format!("{}:{}", row.rule, row.value),
                format!("{:.2}", row.hit_rate),
                format!("{:+.2}", row.hit_rate - scale.lru),
                format!("{:+.2}", row.hit_rate - scale.opt),
                row.paper.map_or_else(String::new, |percent| format!("{percent:.2}")),
            ]);
        }
        let exact = |name: &str, value: f64| {
            let (lru, opt) = (value - scale.lru, value - scale.opt);
            let rates = [value, lru, opt].map(|rate| format!("{rate:.2}"));
            let [value, lru, opt] = rates;
            let (slots, name, none) = (scale.slots.to_string(), name.to_owned(), String::new());
            [slots, name, "-".to_owned(), value, lru, opt, none]
        };
        table.add_row(exact("exact LRU", scale.lru));
        table.add_row(exact("Belady OPT", scale.opt));
    }
    println!("{table}");
}

/// Constants over log2 L and factors over lambda, one chart each and S.
fn chart(folder: &Path, report: &Report) -> Result<()> {
    for scale in &report.scale {
        for (rule, label) in
            [("constant", "log2(L + 1)"), ("frequency", "lambda: decay of a use per step")]
        {
            let x = |value: f64| if rule == "constant" { (value + 1.0).log2() } else { value };
            let mut series = Vec::new();
            for table in ["wide", "paper"] {
                let mine =
                    |row: &&Row| (row.slots, row.table, row.rule) == (scale.slots, table, rule);
                let rows = report.rows.iter().filter(mine);
                let points: Vec<_> = rows.map(|row| (x(row.value), row.hit_rate)).collect();
                if !points.is_empty() {
                    series.push(Series { name: table.into(), points });
                }
            }
            let ends = series.first().map(|s| (s.points[0].0, s.points[s.points.len() - 1].0));
            let Some((low, high)) = ends else { continue };
            for (name, rate) in [("exact LRU", scale.lru), ("Belady OPT", scale.opt)] {
                series.push(Series { name: name.into(), points: vec![(low, rate), (high, rate)] });
            }
            let path = folder.join(format!("lifetime-{rule}-{}.svg", scale.slots));
            let title = format!("{} lifetimes, S = {}, {}", rule, scale.slots, report.workload);
            draw::lines(path, &title, label, "hit rate, %", &series)?;
        }
    }
    Ok(())
}
