//! `avsg bench lifetime` computes how the hit rate depends on the lifetime rule.

use std::path::Path;

use crate::draw::{self, Axis, Series};
use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::{Lifetime, Params, Table};
use avsg::geometry;
use clap::Args;
use serde::{Deserialize, Serialize};

use super::hits;
use super::workload::Workload;
use crate::command::geometry::MachineKind;
use crate::command::output::{self, Cell, Page, Sinks};

/// The constants L that are measured.
const CONSTANTS: [i8; 9] = [0, 1, 2, 4, 8, 16, 32, 64, 127];
/// The decay factors LAMBDA that are measured.
const FACTORS: [f64; 7] = [0.8, 0.85, 0.87, 0.9, 0.93, 0.95, 0.96];

/// Options of `avsg bench lifetime`.
#[derive(Args, Debug)]
#[command(
    after_help = "Rule constant:L sets a slot's lifetime to L at a hit, and every step subtracts 1; a table does not\n\
                  distinguish the ages of slots whose lifetime has run out. Rule frequency:LAMBDA makes the lifetime\n\
                  the logarithm of a count of uses that every step multiplies by LAMBDA (wide table only). Hit rates\n\
                  are in percent and leave out the first step. Exact LRU and Belady's optimum run on the same steps.\n\
                  The paper states hit rates for L = 1, 8 and 16 on its own requests (K = 2048, S = 8192), which are\n\
                  not public. They have a column of their own and show the trend over L."
)]
pub struct Options {
    #[command(flatten)]
    workload: Workload,
    /// S, the slots per request and layer; powers of two from 64 to 32768
    #[arg(long, value_name = "S,..", value_delimiter = ',', default_value = "4096,8192")]
    slots: Vec<u32>,
    /// K, the ids selected per token; from a trace with more, the K ids with the smallest hashes are
    /// kept [default: the trace's]
    #[arg(long, value_name = "K")]
    k: Option<usize>,
    /// Steps to replay, at least 1; fewer if the trace is shorter [default: all steps of the trace, or
    /// 1000 without a trace]
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// Vector machine that runs the kernels; auto is the fastest that the CPU has
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
    scale: Vec<PolicyRates>,
}

#[derive(Serialize)]
struct Row {
    slots: u32,
    table: &'static str,
    rule: &'static str,
    /// L or lambda.
    value: f64,
    /// In percent after the first step; NaN if no later step selects an id.
    hit_rate: f64,
    /// The hit rate that the paper states for this L on its own requests, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    paper: Option<f64>,
}

/// The paper's figures (appendix "Max Lifetime Ablation").
#[derive(Deserialize)]
pub struct Published {
    /// K of the paper's requests.
    pub k: usize,
    /// S of the paper's buffer.
    pub slots: u32,
    reuse: Vec<Reuse>,
    /// Percent of the ids that the previous step selected, too.
    pub previous_step_percent: f64,
    /// Percent of the ids that a buffer of 4096 slots holds, by the paper's table of reuse rates.
    pub slots_4096_percent: f64,
}

/// A hit rate of the paper.
#[derive(Deserialize)]
struct Reuse {
    l: f64,
    percent: f64,
}

impl Published {
    /// Reads the committed figures.
    pub fn read() -> Result<Self> {
        Ok(serde_json::from_str(include_str!("../../published/lifetime.json"))?)
    }

    /// Returns the hit rate in percent that the paper states for its table at this geometry and L.
    fn percent(&self, k: usize, params: &Params, l: f64) -> Option<f64> {
        let same_geometry =
            params.table != Table::Wide && (k, params.slots) == (self.k, self.slots);
        self.percent_at(l).filter(|_| same_geometry)
    }

    /// Returns the hit rate in percent that the paper states for this L.
    pub fn percent_at(&self, l: f64) -> Option<f64> {
        self.reuse.iter().find(|reuse| reuse.l == l).map(|reuse| reuse.percent)
    }
}

/// Hit rates of exact LRU and Belady's optimum in percent.
#[derive(Serialize)]
struct PolicyRates {
    slots: u32,
    lru: f64,
    opt: f64,
}

/// Returns (name, value, rule) of every lifetime rule that the table accepts.
pub fn rules(p: &Params) -> Vec<(&'static str, f64, Lifetime)> {
    let constants = CONSTANTS.map(|l| ("constant", f64::from(l), Lifetime::Constant(l)));
    let factor = |l| geometry::frequency(l).ok().map(|rule| ("frequency", l, rule));
    let all = constants.into_iter().chain(FACTORS.into_iter().filter_map(factor));
    all.filter(|&(.., lifetime)| Params { lifetime, ..*p }.check().is_ok()).collect()
}

/// Computes the hit rates and prints them.
pub fn run(options: &Options) -> Result<()> {
    options.sinks.check(options.workload.path())?;
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
        let machine = Machine::find(options.machine.choice())?;
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
        let [lru, opt] =
            hits::of_lru_and_belady(&trace, slots as usize)?.map(|steps| hits::after_first(&steps));
        scale.push(PolicyRates { slots, lru, opt });
        bar.inc(1);
    }
    bar.finish_and_clear();
    let workload = options.workload.name();
    let report = Report { workload, steps: trace.steps, k: trace.k, rows, scale };
    options.sinks.write(&report, page, chart)
}

fn page(report: &Report) -> Page {
    let mut page = Page::default();
    let Report { workload, steps, k, .. } = report;
    let steps = output::count(*steps, "step");
    page.text(format!("hit rate in percent after the first step; {workload}, {steps}, K = {k}"));
    let mut table = output::table([
        "S",
        "table",
        "lifetime",
        "hit rate, %",
        "minus LRU",
        "minus OPT",
        "paper's requests, %",
    ]);
    let rate = |value: f64| Cell::number(value, 2);
    let difference = |value: f64| Cell::shown(value, format!("{value:+.2}"));
    for scale in &report.scale {
        let rows: Vec<&Row> = report.rows.iter().filter(|row| row.slots == scale.slots).collect();
        // Neighbours with one hit rate are one line, because nine equal lines say no more.
        let key = |row: &Row| (row.table, row.rule, row.hit_rate.to_bits(), row.paper);
        for equal in rows.chunk_by(|a, b| key(a) == key(b)) {
            let (row, last) = (equal[0], equal[equal.len() - 1]);
            let end = if equal.len() > 1 { format!(" to {}", last.value) } else { String::new() };
            table.add_row([
                row.slots.into(),
                row.table.into(),
                format!("{}:{}{end}", row.rule, row.value).into(),
                rate(row.hit_rate),
                difference(row.hit_rate - scale.lru),
                difference(row.hit_rate - scale.opt),
                row.paper.map_or_else(Cell::none, rate),
            ]);
        }
        for (name, value) in [("exact LRU", scale.lru), ("Belady OPT", scale.opt)] {
            table.add_row([
                scale.slots.into(),
                name.into(),
                Cell::none(),
                rate(value),
                difference(value - scale.lru),
                difference(value - scale.opt),
            ]);
        }
    }
    page.table(table);
    page
}

/// Draws for each S one chart of the constants, and one of the decay factors.
fn chart(folder: &Path, report: &Report) -> Result<()> {
    for scale in &report.scale {
        for (rule, axis) in [
            ("constant", Axis::from_zero("L, steps")),
            ("frequency", Axis::from("lambda, decay of a use per step")),
        ] {
            let mut series = Vec::new();
            for table in ["wide", "paper"] {
                let in_chart =
                    |row: &&Row| (row.slots, row.table, row.rule) == (scale.slots, table, rule);
                let rows = report.rows.iter().filter(in_chart);
                let points: Vec<_> = rows.map(|row| (row.value, row.hit_rate)).collect();
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
            draw::lines(path, &title, axis, "hit rate, %", &series)?;
        }
    }
    Ok(())
}
