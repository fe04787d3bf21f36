//! `avsg bench match` measures the time of Stage One beside other ways to match, on the same steps.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use crate::baseline::count_operator_hits;
use crate::draw::{self, Labels, Series, Shape};
use crate::trace::Trace;
use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::{Lifetime, Params};
use avsg::engine::MachineChoice;
use serde::Serialize;

use super::contenders::line_up;
use super::match_options::Options;
use super::stats::{in_turns, summary, us_since};
use super::{Host, number, warn_of_skipped, with_ratio};
use crate::checks::{in_range, require};
use crate::command::busy::{Disturbance, Watch};
use crate::command::geometry::TableKind;
use crate::command::output::{self, Cell, Page, Table};

/// Steps that run first and are not timed, because the caches, the branch predictors and the buffer
/// are cold.
const WARM_UP: usize = 20;
/// Steps of one contender's turn: so many that the caches hold its own table for most of the turn.
const BLOCK: usize = 25;

#[derive(Serialize)]
struct Report {
    machine: Host,
    workload: String,
    disturbance: Disturbance,
    rows: Vec<Row>,
}

/// The times of all contenders at one geometry with one rule.
#[derive(Serialize)]
struct Row {
    k: usize,
    slots: u32,
    table: &'static str,
    spread: u32,
    lifetime: String,
    machine: String,
    steps: usize,
    /// In percent after the first step; null if no later step selects an id.
    hit_rate: Option<f64>,
    median_us: f64,
    /// This median divided by that of constant lifetimes, for learned ones.
    over_constant: Option<f64>,
    /// Median time to learn from a step.
    learn_us: Option<f64>,
    /// The ninth decile of this operator's times divided by their median.
    time_spread: f64,
    trimmed_mean_us: f64,
    mean_us: f64,
    emu_us: f64,
    scalar_us: f64,
    /// Median of sort and two pointers.
    dual_pointer_us: f64,
    hashmap_lru_us: f64,
    lru_crate_us: f64,
}

struct Case {
    k: usize,
    table: &'static str,
    /// The geometry with each rule.
    rules: Vec<Params>,
}

/// Returns the combinations that can be run, and names the others on standard error.
fn combinations(options: &Options, trace_k: usize) -> Result<Vec<Case>> {
    warn_of_skipped(&options.k, &options.slots, trace_k)?;
    let mut all = Vec::new();
    for &slots in &options.slots {
        for &kind in &options.tables {
            // Beside `wide`, the paper's table is left out where it cannot have so many slots.
            let paper = Params::paper(1, 1, slots);
            if kind == TableKind::Paper && options.tables.len() > 1 && paper.check().is_err() {
                continue;
            }
            for &k in options.k.iter().filter(|&&k| k <= trace_k.min(slots as usize)) {
                let table = if kind == TableKind::Paper { "paper" } else { "wide" };
                let rules = options.rules(kind);
                let rules = rules.iter().map(|rule| rule.params(k, 1, slots, 0));
                all.push(Case { k, table, rules: rules.collect::<Result<_>>()? });
            }
        }
    }
    Ok(all)
}

pub fn run(options: &Options) -> Result<()> {
    options.sinks.check(options.workload.path())?;
    in_range("--steps", options.steps, 1..=1_000_000, "choose 1000, for example")?;
    let trace = options.workload.load(options.steps + WARM_UP)?;
    let limit =
        format!("it must be more than {WARM_UP}, because the first {WARM_UP} are not timed");
    let is_long = trace.steps > WARM_UP;
    require(is_long, "trace steps", trace.steps, limit, "record a longer trace")?;
    let combinations = combinations(options, trace.k)?;
    let bar = output::progress(combinations.len(), "match");
    let mut rows = Vec::new();
    let watch = Watch::start();
    for case in combinations {
        let machine = Machine::find(options.machine.choice())?;
        rows.extend(measure(&trace.take_k(case.k)?, &case, machine)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let spreads = rows.iter().map(|row| row.time_spread);
    let disturbance = watch.stop(rows.iter().map(|row| row.steps).sum(), spreads);
    let (machine, workload) = (Host::detect(), options.workload.name());
    let report = Report { machine, workload, disturbance, rows };
    options.sinks.write(&report, page, chart)
}

fn measure(trace: &Trace, case: &Case, machine: Machine) -> Result<Vec<Row>> {
    let emu = Machine::find(MachineChoice::Emu)?;
    let mut contenders = line_up(&case.rules, [machine, emu])?;
    let mut learning = vec![Vec::new(); contenders.len()];
    let rounds = trace.steps.div_ceil(BLOCK);
    let summaries = in_turns(rounds, contenders.len(), |round, contender, times| {
        for step in (round * BLOCK..trace.steps).take(BLOCK) {
            let ids = black_box(trace.row(step, 0));
            let start = Instant::now();
            contenders[contender].step(ids);
            let us = us_since(start);
            let start = Instant::now();
            contenders[contender].learn();
            let learn_us = us_since(start);
            if step >= WARM_UP {
                times.push(us);
                learning[contender].push(learn_us);
            }
        }
        Ok(())
    })?;
    let (others, own) = summaries.split_at(OTHERS.len() - 1);
    let constant = case.rules.iter().position(|p| p.lifetime == Lifetime::Constant(127));
    let constant_us = constant.map(|at| own[2 * at].median);
    let row = |(at, params): (usize, &Params)| {
        let (own, emu, learn) =
            (own[2 * at], own[2 * at + 1], &mut learning[others.len() + 2 * at]);
        let learned = params.lifetime == Lifetime::Learned;
        Ok(Row {
            k: trace.k,
            slots: params.slots,
            table: case.table,
            spread: params.spread,
            lifetime: params.lifetime.to_string(),
            machine: machine.to_string(),
            steps: trace.steps - WARM_UP,
            hit_rate: count_operator_hits(trace, params, machine)?.percent(),
            median_us: own.median,
            over_constant: constant_us.filter(|_| learned).map(|us| own.median / us),
            learn_us: learned.then(|| summary(learn).median),
            time_spread: own.spread,
            trimmed_mean_us: own.trimmed_mean,
            mean_us: own.mean,
            emu_us: emu.median,
            scalar_us: others[0].median,
            dual_pointer_us: others[1].median,
            hashmap_lru_us: others[2].median,
            lru_crate_us: others[3].median,
        })
    };
    case.rules.iter().enumerate().map(row).collect()
}

/// The other ways to match, and their medians.
type Median = fn(&Row) -> f64;
const OTHERS: [(&str, Median); 5] = [
    ("emu", |row| row.emu_us),
    ("scalar table", |row| row.scalar_us),
    ("dual pointer", |row| row.dual_pointer_us),
    ("HashMap and LRU", |row| row.hashmap_lru_us),
    ("LRU crate", |row| row.lru_crate_us),
];

fn page(report: &Report) -> Page {
    let mut page = Page::default();
    let Host { cpu, cores, .. } = &report.machine;
    let cores = output::count(*cores, "core");
    page.text(format!("{cpu} ({cores}), {}", report.workload));
    let mut own = Table::new([
        "K",
        "S",
        "table and rule",
        "machine",
        "hit rate, %",
        "median, us",
        "trimmed mean, us",
        "learning, us",
    ])
    .titled("AVSG");
    let columns = ["K", "S", "table", "AVSG, us"].map(str::to_owned).into_iter();
    let others = OTHERS.iter().map(|(name, _)| format!("{name}, us"));
    let mut beside = Table::new(columns.chain(others)).titled("AVSG beside other ways to match");
    for row in &report.rows {
        let table = format!("{} {}", row.table, row.lifetime);
        let median = match row.over_constant {
            Some(ratio) => with_ratio(row.median_us, ratio),
            None => number(row.median_us),
        };
        own.add_row([
            row.k.into(),
            row.slots.into(),
            table.into(),
            row.machine.clone().into(),
            row.hit_rate.map_or_else(Cell::none, |rate| Cell::number(rate, 2)),
            median,
            number(row.trimmed_mean_us),
            row.learn_us.map_or_else(Cell::none, number),
        ]);
        // The others ran once beside both rules, and keep the least recently used slots.
        if row.over_constant.is_none() {
            let medians = OTHERS.iter().map(|(_, median)| median(row));
            let others = medians.map(|us| with_ratio(us, us / row.median_us));
            let geometry = [row.k.into(), row.slots.into(), row.table.into()];
            beside.add_row(geometry.into_iter().chain([number(row.median_us)]).chain(others));
        }
    }
    page.table(own);
    page.table(beside);
    let steps = output::count(report.rows.first().map_or(0, |row| row.steps), "step");
    page.text(format!(
        "The times are medians over {steps}, except for the trimmed mean, which leaves out the fastest and the \
         slowest tenth. AVSG is timed up to the list of misses; learning follows it in each step. (x) is the ratio \
         of a time to that of AVSG, and beside a time of AVSG with learned lifetimes to that with constant ones."
    ));
    page.text(format!("times of AVSG: {}", report.disturbance.line()));
    page
}

/// Draws for each table and S one chart of the times over K. Machine emu is left out, because its times
/// would leave no room for the others.
fn chart(folder: &Path, report: &Report) -> Result<()> {
    let mut kinds: Vec<(&str, u32)> = report.rows.iter().map(|r| (r.table, r.slots)).collect();
    kinds.dedup();
    for (table, slots) in kinds {
        let rows = || report.rows.iter().filter(|r| (r.table, r.slots) == (table, slots));
        let mut rules: Vec<&str> = rows().map(|row| row.lifetime.as_str()).collect();
        rules.sort_unstable();
        rules.dedup();
        let joined = |name: String, rule: &str, median: Median| Series {
            name,
            shape: Shape::Joined,
            points: rows()
                .filter(|row| row.lifetime == rule)
                .map(|row| (row.k as f64, median(row)))
                .collect(),
        };
        let own =
            rules.iter().map(|rule| joined(format!("AVSG {rule}"), rule, |row| row.median_us));
        let others =
            OTHERS[1..].iter().map(|&(name, median)| joined(name.into(), rules[0], median));
        let series = own.chain(others);
        let labels = Labels {
            title: &format!("Time to match one token, {table} table, S = {slots}"),
            subject: &report.workload,
            x: "K, selected ids",
            y: "median of a step, us",
        };
        let path = folder.join(format!("match-{table}-{slots}.svg"));
        draw::chart(path, &labels, &series.collect::<Vec<_>>())?;
    }
    Ok(())
}
