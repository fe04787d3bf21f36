//! `avsg bench reuse` computes hit rates on the paper's synthetic workload.

use std::path::{Path, PathBuf};

use crate::draw::{self, Bars};
use crate::synth::{CONTEXT, Synth};
use crate::trace::Trace;
use anyhow::{Context, Result};
use avsg::cpu::machine::Machine;
use avsg::device::params::{Lifetime, Params};
use avsg::engine::MachineChoice;
use avsg::{Error, geometry};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::hits::{self, Hits};
use super::number;
use crate::command::geometry::{DEFAULT_LAMBDA, MachineKind, multipliers};
use crate::command::output::{self, Page, Sinks, Table};

/// The first step whose hits are counted; the first step of a trace is 0.
const FIRST_STEP: usize = 4;
/// The last step whose hits are counted.
const LAST_STEP: usize = 14;

/// The paper's figures as JSON.
const PUBLISHED: &str = include_str!("../../published/reuse.json");
/// The K of the paper's figures.
const PUBLISHED_K: usize = 2048;
/// The lifetime rule of the paper's table in this experiment.
const LIFETIME: Lifetime = Lifetime::Constant(8);

/// Options of `avsg bench reuse`.
#[derive(Args, Debug)]
#[command(
    after_help = "Reuse is the hit rate in percent, over steps 4 to 14 (the first step is 0) and over the seeds. The\n\
                  default cells are the paper's 18 (K = 2048, L = 8, 16384 ids of context, 5 seeds), and the column\n\
                  reference shows the paper's figures. To compare with other figures, pass them as a file:\n  \
                  [{\"gamma\": 0.8, \"mu\": 0.5, \"slots\": 4096, \"reuse\": 88.7}, ...]   (reuse in percent)\n  \
                  avsg bench reuse --reference cells.json"
)]
pub struct Options {
    /// Share of a step's ids that the previous step selected too, 0 to 1
    #[arg(long, value_name = "SHARE,..", value_delimiter = ',', default_value = "0.5,0.7,0.9")]
    gamma: Vec<f64>,
    /// Mean share of the other ids that an earlier step selected, 0 to 1 (standard deviation 0.01)
    #[arg(long, value_name = "SHARE,..", value_delimiter = ',', default_value = "0.5,0.7,0.9")]
    mu: Vec<f64>,
    /// S, the slots per request and layer; powers of two from 64 to 32768
    #[arg(long, value_name = "S,..", value_delimiter = ',', default_value = "4096,8192")]
    slots: Vec<u32>,
    /// K, the ids selected per token (one token per step); 1 to S
    #[arg(long, value_name = "K", default_value_t = 2048)]
    k: usize,
    /// Number of seeds of random numbers to average over, 1 to 1000; the seeds are 1, 2, ..
    #[arg(long, value_name = "N", default_value_t = 5)]
    seeds: u64,
    /// Compare the paper's table with the cells of this file, which replace --gamma, --mu and --slots
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["gamma", "mu", "slots"])]
    reference: Option<PathBuf>,
    /// Multipliers of the paper's hash, two odd numbers of 32 bits; the paper does not state its own
    /// [default: 2654435761,2246822519]
    #[arg(long, value_name = "A1,A2")]
    primes: Option<String>,
    /// Vector machine that runs the kernels; auto is the fastest that the CPU has
    #[arg(long, value_enum, default_value = "auto")]
    machine: MachineKind,
    #[command(flatten)]
    sinks: Sinks,
}

/// A point of the paper's synthetic workload.
#[derive(Clone, Debug, Deserialize)]
pub struct Cell {
    /// Share of a step's ids that the previous step selected, too.
    pub gamma: f64,
    /// Mean share of the other ids that an earlier step selected.
    pub mu: f64,
    /// S, the slots of the buffer.
    pub slots: u32,
    /// The hit rate in percent that the cell is compared with.
    pub reuse: Option<f64>,
}

#[derive(Serialize)]
struct Report {
    k: usize,
    context: usize,
    steps: [usize; 2],
    seeds: u64,
    /// The decay of a use per step in the column `wide_frequency`.
    lambda: f64,
    /// Root mean square of the paper table's differences from the reference, in percentage points.
    #[serde(skip_serializing_if = "Option::is_none")]
    rms: Option<f64>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    gamma: f64,
    mu: f64,
    slots: u32,
    paper: f64,
    wide_constant: f64,
    wide_frequency: f64,
    lru: f64,
    opt: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<f64>,
}

fn cells(options: &Options) -> Result<Vec<Cell>> {
    if let Some(path) = &options.reference {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let cells = parse(&text).map_err(|limit| {
            let remedy = "see avsg bench reuse --help";
            Error::invalid("--reference", path.display(), limit, remedy)
        })?;
        return Ok(cells);
    }
    let published =
        if options.k == PUBLISHED_K { parse(PUBLISHED).unwrap_or_default() } else { vec![] };
    let mut cells = Vec::new();
    for &slots in &options.slots {
        for &gamma in &options.gamma {
            for &mu in &options.mu {
                let same = |cell: &&Cell| (cell.gamma, cell.mu, cell.slots) == (gamma, mu, slots);
                let reuse = published.iter().find(same).and_then(|cell| cell.reuse);
                cells.push(Cell { gamma, mu, slots, reuse });
            }
        }
    }
    Ok(cells)
}

/// Parses the cells of a reference; the error says what is wrong with the text.
fn parse(text: &str) -> std::result::Result<Vec<Cell>, String> {
    let cells: Vec<Cell> = serde_json::from_str(text)
        .map_err(|error| format!("it must be a list of {{gamma, mu, slots, reuse}}: {error}"))?;
    if cells.is_empty() || cells.iter().any(|cell| cell.reuse.is_none()) {
        return Err("it must have at least one cell, and each cell its reuse in percent".into());
    }
    Ok(cells)
}

/// Computes the hit rates and prints them.
pub fn run(options: &Options) -> Result<()> {
    options.sinks.check(options.reference.as_deref())?;
    if !(1..=1000).contains(&options.seeds) {
        let limit = "it must be 1..=1000";
        return Err(
            Error::invalid("--seeds", options.seeds, limit, "choose 5, as the paper").into()
        );
    }
    let cells = cells(options)?;
    let bar = output::progress(cells.len(), "reuse");
    let mut rows = Vec::with_capacity(cells.len());
    for cell in &cells {
        rows.push(measure(options, cell)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let squares = rows.iter().filter_map(|row| Some((row.paper - row.reference?).powi(2)));
    let (n, sum) = squares.fold((0, 0.0), |(n, sum), square| (n + 1, sum + square));
    let rms = (n > 0).then(|| (sum / f64::from(n)).sqrt());
    let (k, context, seeds) = (options.k, CONTEXT, options.seeds);
    let (steps, lambda) = ([FIRST_STEP, LAST_STEP], DEFAULT_LAMBDA);
    let report = Report { k, context, steps, seeds, lambda, rms, rows };
    options.sinks.write(&report, page, chart)
}

fn measure(options: &Options, cell: &Cell) -> Result<Row> {
    let k = u32::try_from(options.k).unwrap_or(u32::MAX);
    let wide = Params { lifetime: Lifetime::frequency(), ..Params::wide(k, 1, cell.slots) };
    let constant = Params { lifetime: Lifetime::Constant(127), ..wide };
    let mut paper = Params { lifetime: LIFETIME, ..Params::paper(k, 1, cell.slots) };
    if let Some(primes) = &options.primes {
        paper.table = multipliers(primes, paper.table)?;
    }
    let tables = [paper, constant, wide];
    tables.iter().try_for_each(geometry::check)?;
    let machine = Machine::find(options.machine.choice())?;
    let hits = |trace: &Trace| {
        let [lru, opt] = hits::of_lru_and_belady(trace, cell.slots as usize)?;
        let [paper, constant, wide] =
            [0, 1, 2].map(|table| hits::of_table(trace, &tables[table], machine));
        Ok([paper?, constant?, wide?, lru, opt])
    };
    let shares = shares(cell, options.k, options.seeds, hits)?;
    let [paper, wide_constant, wide_frequency, lru, opt] = shares;
    let &Cell { gamma, mu, slots, reuse: reference } = cell;
    Ok(Row { gamma, mu, slots, paper, wide_constant, wide_frequency, lru, opt, reference })
}

/// Returns the percentages of hits that `hits` counts on the steps of a cell, as means over the seeds.
fn shares<const N: usize>(
    cell: &Cell,
    k: usize,
    seeds: u64,
    hits: impl Fn(&Trace) -> Result<[Hits; N]>,
) -> Result<[f64; N]> {
    let mut sums = [0.0; N];
    for seed in 1..=seeds {
        let &Cell { gamma, mu, .. } = cell;
        let synth = Synth { gamma, mu, k, steps: LAST_STEP + 1, seed, context: CONTEXT };
        for (sum, steps) in sums.iter_mut().zip(hits(&synth.trace()?)?) {
            // All steps have K ids, so the share of their sum is the mean of their shares.
            *sum += hits::percent(&steps[FIRST_STEP..=LAST_STEP]) / seeds as f64;
        }
    }
    Ok(sums)
}

/// Returns the paper's 18 cells with its figures.
///
/// # Errors
/// An error is returned if the committed figures do not parse.
pub fn published() -> Result<Vec<Cell>> {
    parse(PUBLISHED).map_err(anyhow::Error::msg)
}

/// Returns the hit rate of the paper's table on a cell in percent, with the paper's K and L.
pub fn of_the_papers_table(cell: &Cell, seeds: u64) -> Result<f64> {
    let params = Params { lifetime: LIFETIME, ..Params::paper(PUBLISHED_K as u32, 1, cell.slots) };
    let machine = Machine::find(MachineChoice::Auto)?;
    let hits = |trace: &Trace| Ok([hits::of_table(trace, &params, machine)?]);
    let [share] = shares(cell, PUBLISHED_K, seeds, hits)?;
    Ok(share)
}

fn page(report: &Report) -> Page {
    let mut page = Page::default();
    let (k, seeds) = (report.k, report.seeds);
    let seeds = output::count(seeds as usize, "seed");
    page.text(format!(
        "reuse in percent, K = {k}, context {CONTEXT}, steps {FIRST_STEP} to {LAST_STEP}, {seeds}"
    ));
    let mut table = Table::new([
        "gamma",
        "mu",
        "S",
        "paper",
        "wide constant",
        "wide frequency",
        "exact LRU",
        "Belady OPT",
        "reference",
    ]);
    for row in &report.rows {
        let percent = |value: f64| output::Cell::number(value, 2);
        table.add_row([
            number(row.gamma),
            number(row.mu),
            row.slots.into(),
            percent(row.paper),
            percent(row.wide_constant),
            percent(row.wide_frequency),
            percent(row.lru),
            percent(row.opt),
            row.reference.map_or_else(output::Cell::none, percent),
        ]);
    }
    page.table(table);
    if let Some(rms) = report.rms {
        page.text(format!("root mean square of paper minus reference: {rms:.2} percentage points"));
    }
    page
}

fn chart(folder: &Path, report: &Report) -> Result<()> {
    let mut sizes: Vec<u32> = report.rows.iter().map(|row| row.slots).collect();
    sizes.sort_unstable();
    sizes.dedup();
    type Column = fn(&Row) -> f64;
    let columns: [(&str, Column); 5] = [
        ("paper", |r| r.paper),
        ("wide, constant", |r| r.wide_constant),
        ("wide, frequency", |r| r.wide_frequency),
        ("exact LRU", |r| r.lru),
        ("Belady OPT", |r| r.opt),
    ];
    for slots in sizes {
        let rows = || report.rows.iter().filter(|row| row.slots == slots);
        let groups: Vec<_> = rows().map(|r| format!("{}/{}", r.gamma, r.mu)).collect();
        let series = columns
            .map(|(name, rate)| Bars { name: name.into(), values: rows().map(rate).collect() });
        let title = format!("Reuse by gamma/mu, K = {}, S = {slots}", report.k);
        let path = folder.join(format!("reuse-{slots}.svg"));
        draw::bars(path, &title, "hit rate, %", &groups, &series)?;
    }
    Ok(())
}
