//! `avsg-research lifetime` computes how the hit rate depends on the lifetime rule, beside the figures
//! of the paper's ablation.

use std::path::PathBuf;

use anyhow::Result;
use avsg::device::params::{Lifetime, Params};
use avsg_cli::baseline::{Belady, ExactLru, LRU, OPTIMUM};
use avsg_cli::command::output::{self, Cell, OutputOptions, Page};
use avsg_cli::command::rules::{rules, tables};
use avsg_cli::command::trace_options::PartOptions;
use avsg_cli::trace::name_of;
use clap::Args;
use serde::Serialize;

use crate::estimate::paper::workload;
use crate::hits;
use crate::published::{LIFETIME_SLOTS, LIFETIMES};

/// K, and the steps if no number is given, of the synthetic workload.
const SYNTHETIC: (usize, usize) = (2048, 1000);

/// Options of `avsg-research lifetime`.
#[derive(Args, Debug)]
#[command(
    after_help = "Rule constant:L sets a slot's lifetime to L at a hit, and every step subtracts 1; a table does not \
                  distinguish the ages of slots whose lifetime has run out. With rule learned each \
                  request learns which slots to keep (wide table only). Hit rates are in percent and leave out the first step. Exact LRU and Belady's optimum run on the same steps. \
                  The paper states hit rates for L = 1, 8 and 16 on its own requests (K = 2048, S = 8192), which are \
                  not public. They have a column of their own and show the trend over L."
)]
pub struct Options {
    /// Recorded trace, .npy, .npz or .safetensors, - for standard input; every token is taken as a step
    /// of its own [default: the paper's synthetic workload with gamma 0.8, mu 0.5, K 2048 and 16384 ids
    /// of context]
    #[arg(value_name = "TRACE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    part: PartOptions,
    /// S, the slots per request and layer; multiples of 64 up to 65536
    #[arg(long, value_name = "S,..", value_delimiter = ',', default_value = "4096,8192")]
    slots: Vec<u32>,
    /// Steps to replay, at least 1; fewer if the trace is shorter [default: all steps of the trace, or
    /// 1000 without a trace]
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    #[command(flatten)]
    output: OutputOptions,
}

/// Hit rates in percent after the first step; NaN if no later step selects an id.
#[derive(Serialize)]
pub struct Report {
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
    /// The rule: `constant:L` or `learned`.
    lifetime: String,
    hit_rate: f64,
    /// The hit rate that the paper states for this L on its own requests, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    paper: Option<f64>,
}

/// Exact LRU and Belady's optimum.
#[derive(Serialize)]
struct Scale {
    slots: u32,
    lru: f64,
    opt: f64,
}

/// Computes the hit rates and prints them.
pub fn run(options: &Options) -> Result<()> {
    options.output.check(options.trace.as_deref(), [])?;
    let report = compute(options)?;
    options.output.write(&report, || page(&report))
}

/// Computes the hit rates.
pub fn compute(options: &Options) -> Result<Report> {
    let (k, steps) = SYNTHETIC;
    let trace = match &options.trace {
        Some(path) => options.part.read(path)?.as_mtp0(),
        None => workload(k, options.steps.unwrap_or(steps))?,
    };
    // An indexer's ids are not sorted, and the order of a token's ids decides which of them is evicted.
    let trace = trace.truncated(options.steps.unwrap_or(usize::MAX))?.shuffled(1);
    let bar = output::progress(options.slots.len(), "lifetime");
    let (mut rows, mut scale) = (Vec::new(), Vec::new());
    for &slots in &options.slots {
        for (table, params) in tables(trace.k, 1, slots)? {
            for lifetime in rules(&params) {
                let steps = hits::of_table(&trace, &Params { lifetime, ..params })?;
                let hit_rate = hits::percent(&steps[1..]);
                let is_the_papers = (table, trace.k, slots) == ("paper", k, LIFETIME_SLOTS);
                let same =
                    |&&(l, _): &&(i8, f64)| is_the_papers && lifetime == Lifetime::Constant(l);
                let paper = LIFETIMES.iter().find(same).map(|&(_, percent)| percent);
                let lifetime = lifetime.to_string();
                rows.push(Row { slots, table, lifetime, hit_rate, paper });
            }
        }
        let lru = hits::of_policy(&trace, &mut ExactLru::new(slots as usize)?);
        let opt = hits::of_policy(&trace, &mut Belady::new(&trace, slots as usize)?);
        let [lru, opt] = [lru, opt].map(|steps| hits::percent(&steps[1..]));
        scale.push(Scale { slots, lru, opt });
        bar.inc(1);
    }
    bar.finish_and_clear();
    let workload =
        options.trace.as_deref().map_or("synthetic gamma 0.8 mu 0.5".to_owned(), name_of);
    Ok(Report { workload, steps: trace.steps, k: trace.k, rows, scale })
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
        "minus exact LRU",
        "minus the optimum",
        "paper's requests, %",
    ]);
    let rate = |value: f64| Cell::number(value, 2);
    let difference = |value: f64| Cell::shown(value, format!("{value:+.2}"));
    for scale in &report.scale {
        let rows: Vec<&Row> = report.rows.iter().filter(|row| row.slots == scale.slots).collect();
        // Neighbours with one hit rate are one line, because nine equal lines say no more.
        let key = |row: &&Row| {
            let constant = row.lifetime.starts_with("constant");
            (row.table, constant, row.hit_rate.to_bits(), row.paper)
        };
        let both = |rate: f64| [difference(rate - scale.lru), difference(rate - scale.opt)];
        for equal in rows.chunk_by(|a, b| key(a) == key(b)) {
            let (row, last) = (equal[0], equal[equal.len() - 1]);
            let l = last.lifetime.strip_prefix("constant:").unwrap_or_default();
            let end = if equal.len() > 1 { format!(" to {l}") } else { String::new() };
            let rule = format!("{}{end}", row.lifetime);
            let first = [row.slots.into(), row.table.into(), rule.into(), rate(row.hit_rate)];
            let paper = row.paper.map_or_else(Cell::none, rate);
            table.add_row(first.into_iter().chain(both(row.hit_rate)).chain([paper]));
        }
        for (name, value) in [(LRU, scale.lru), (OPTIMUM, scale.opt)] {
            let first = [scale.slots.into(), name.into(), Cell::none(), rate(value)];
            table.add_row(first.into_iter().chain(both(value)));
        }
    }
    page.table(table);
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use crate::tests::{command, json, left_out, refused};

    #[test]
    fn the_papers_figures_stand_beside_its_table_and_size_alone() {
        if left_out() {
            return;
        }
        let report = json("lifetime --steps 2 --slots 4096,8192");
        let rows = report["rows"].as_array().unwrap();
        // The table wide has 9 constants and learned lifetimes; paper has 8 constants, as it refuses
        // L = 0.
        assert_eq!(rows.len(), 2 * (9 + 1 + 8));
        let stated: Vec<_> = rows.iter().filter(|row| row["paper"].is_f64()).collect();
        assert_eq!(stated.len(), 3);
        for row in stated {
            assert_eq!((&row["table"], &row["slots"]), (&"paper".into(), &8192.into()));
        }
        let Command::Lifetime(options) = command("lifetime --steps 2") else { unreachable!() };
        let text = page(&compute(&options).unwrap()).framed(None);
        assert!(text.contains("constant:0 to 127") && text.contains("learned"), "{text}");
    }

    #[test]
    fn no_rule_surpasses_the_optimum_on_a_recorded_trace() {
        if left_out() {
            return;
        }
        let trace = "lifetime ../tests/data/nomicon-4k-k256.npz --slots";
        let report = json(&format!("{trace} 512"));
        assert_eq!(report["steps"], 256);
        let opt = report["scale"][0]["opt"].as_f64().unwrap();
        assert!(report["scale"][0]["lru"].as_f64().unwrap() < opt && opt < 100.0, "{report}");
        let rows = report["rows"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["hit_rate"].as_f64().unwrap() < opt), "{report}");
        refused(&format!("{trace} 1000"), &["1000"]);
    }
}
