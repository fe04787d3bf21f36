//! `avsg-research reuse` computes hit rates on the paper's synthetic workload.

use std::ops::RangeInclusive;

use anyhow::Result;
use avsg::Error;
use avsg::device::params::{Lifetime, Params};
use avsg_cli::baseline::{Belady, ExactLru, LRU, OPTIMUM};
use avsg_cli::command::geometry::multipliers;
use avsg_cli::command::output::{self, OutputOptions, Page, Table, count};
use avsg_cli::synth::{CONTEXT, Synth};
use avsg_cli::trace::Trace;
use clap::Args;
use serde::Serialize;

use crate::hits::{self, Hits};
use crate::published::{REUSE, SHARES};

/// K of the paper's figures.
const K: u32 = 2048;
/// The steps whose hits are counted; the first step of a trace is 0.
const COUNTED: RangeInclusive<usize> = 4..=14;
/// The number of seeds of the paper's figures.
pub const SEEDS: u64 = 5;

/// Options of `avsg-research reuse`.
#[derive(Args, Debug)]
#[command(
    after_help = "Reuse is the hit rate in percent, over steps 4 to 14 (the first step is 0) and over the seeds. The \
                  cells are the paper's 18 (K = 2048, L = 8, 16384 ids of context), and the column reference has its \
                  figures. avsg synth writes the trace of any other cell, and avsg compare computes its hit rates."
)]
pub struct Options {
    /// Number of seeds of random numbers to average over, 1 to 1000; the seeds are 1, 2, ..
    #[arg(long, value_name = "N", default_value_t = SEEDS)]
    seeds: u64,
    /// Multipliers of the paper's hash, two odd numbers of 32 bits; the paper does not state its own
    /// [default: 2654435761,2246822519]
    #[arg(long, value_name = "A1,A2")]
    primes: Option<String>,
    #[command(flatten)]
    output: OutputOptions,
}

/// Hit rates in percent at a point of the workload, as means over the seeds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Cell {
    pub gamma: f64,
    pub mu: f64,
    pub slots: u32,
    /// The paper's table.
    pub paper: f64,
    wide_constant: f64,
    wide_learned: f64,
    lru: f64,
    opt: f64,
    /// The figure that the paper states.
    pub reference: f64,
}

#[derive(Serialize)]
pub struct Report {
    seeds: u64,
    /// Root mean square of the paper table's differences from the paper's figures, in percentage points.
    rms: f64,
    rows: Vec<Cell>,
}

/// Returns the paper's 18 cells with its figures.
fn cells() -> impl Iterator<Item = Cell> {
    let of_size = |(slots, rates): (u32, [[f64; 3]; 3])| {
        let point = move |at: usize| {
            let (gamma, mu) = (SHARES[at / 3], SHARES[at % 3]);
            Cell { gamma, mu, slots, reference: rates[at / 3][at % 3], ..Cell::default() }
        };
        (0..9).map(point)
    };
    REUSE.into_iter().flat_map(of_size)
}

/// Returns the paper's table at a cell, with the paper's lifetimes.
fn papers_table(cell: &Cell) -> Params {
    Params { lifetime: Lifetime::Constant(8), ..Params::paper(K, 1, cell.slots) }
}

/// Computes the hit rates and prints them.
pub fn run(options: &Options) -> Result<()> {
    options.output.check([], [])?;
    let report = compute(options)?;
    options.output.write(&report, || page(&report))
}

/// Computes the hit rates.
pub fn compute(options: &Options) -> Result<Report> {
    let seeds = options.seeds;
    if !(1..=1000).contains(&seeds) {
        let limit = "it must be 1..=1000";
        return Err(Error::invalid("--seeds", seeds, limit, "choose 5, as the paper").into());
    }
    let bar = output::progress(cells().count(), "reuse");
    let measure = |cell: Cell| {
        let mut paper = papers_table(&cell);
        if let Some(primes) = &options.primes {
            paper.table = multipliers(primes, paper.table)?;
        }
        let wide = |lifetime| Params { lifetime, ..Params::wide(K, 1, cell.slots) };
        let rates = shares(&cell, seeds, |trace| {
            Ok([
                hits::of_table(trace, &paper)?,
                hits::of_table(trace, &wide(Lifetime::Constant(127)))?,
                hits::of_table(trace, &wide(Lifetime::Learned))?,
                hits::of_policy(trace, &mut ExactLru::new(cell.slots as usize)?),
                hits::of_policy(trace, &mut Belady::new(trace, cell.slots as usize)?),
            ])
        });
        bar.inc(1);
        let [paper, wide_constant, wide_learned, lru, opt] = rates?;
        Ok(Cell { paper, wide_constant, wide_learned, lru, opt, ..cell })
    };
    let rows = cells().map(measure).collect::<Result<Vec<_>>>()?;
    bar.finish_and_clear();
    let squares = rows.iter().map(|row| (row.paper - row.reference).powi(2));
    let rms = (squares.sum::<f64>() / rows.len() as f64).sqrt();
    Ok(Report { seeds, rms, rows })
}

/// Returns the paper's cells with the hit rates of the paper's table alone.
pub fn of_the_papers_table() -> Result<Vec<Cell>> {
    let measure = |cell: Cell| {
        let table = |trace: &Trace| Ok([hits::of_table(trace, &papers_table(&cell))?]);
        let [paper] = shares(&cell, SEEDS, table)?;
        Ok(Cell { paper, ..cell })
    };
    cells().map(measure).collect()
}

/// Returns the percentages of hits that `hits` counts at a cell, as means over the seeds.
fn shares<const N: usize>(
    cell: &Cell,
    seeds: u64,
    hits: impl Fn(&Trace) -> Result<[Hits; N]>,
) -> Result<[f64; N]> {
    let mut sums = [0.0; N];
    for seed in 1..=seeds {
        let &Cell { gamma, mu, .. } = cell;
        let (k, steps) = (K as usize, COUNTED.end() + 1);
        let trace = Synth { gamma, mu, k, steps, seed, context: CONTEXT }.trace()?;
        for (sum, steps) in sums.iter_mut().zip(hits(&trace)?) {
            // All steps have K ids, so the share of their sum is the mean of their shares.
            *sum += hits::percent(&steps[COUNTED]) / seeds as f64;
        }
    }
    Ok(sums)
}

fn page(report: &Report) -> Page {
    let mut page = Page::default();
    let seeds = count(report.seeds as usize, "seed");
    page.text(format!("reuse in percent, K = {K}, context {CONTEXT}, steps 4 to 14, {seeds}"));
    let mut table = Table::new([
        "gamma",
        "mu",
        "S",
        "paper",
        "wide constant",
        "wide learned",
        LRU,
        OPTIMUM,
        "reference",
    ]);
    for row in &report.rows {
        let rates =
            [row.paper, row.wide_constant, row.wide_learned, row.lru, row.opt, row.reference];
        let first = [row.gamma.into(), row.mu.into(), row.slots.into()];
        let rates = rates.map(|rate| output::Cell::number(rate, 2));
        table.add_row(first.into_iter().chain(rates));
    }
    page.table(table);
    page.text(format!(
        "root mean square of paper minus reference: {:.2} percentage points",
        report.rms
    ));
    page
}

#[cfg(test)]
mod tests {
    use crate::tests::{json, left_out, refused};

    #[test]
    fn the_papers_table_is_within_a_point_of_the_papers_reuse() {
        if left_out() {
            return;
        }
        let report = json("reuse");
        assert!(report["rms"].as_f64().unwrap() < 0.6, "{report}");
        let rows = report["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 18);
        for row in rows {
            let rate = |field: &str| row[field].as_f64().unwrap();
            assert!(rate("opt") >= rate("lru") && rate("paper") <= rate("opt"), "{row}");
            assert!((rate("wide_constant") - rate("lru")).abs() < 0.2, "{row}");
        }
        let other = json("reuse --seeds 1 --primes 244529,1003273");
        assert!(other["rms"].as_f64().unwrap() < 3.0, "{other}");
    }

    #[test]
    fn bad_input_is_refused() {
        refused("reuse --primes 2,4", &["odd"]);
        refused("reuse --primes 7", &["--primes is 7"]);
        refused("reuse --seeds 0", &["--seeds is 0"]);
    }
}
