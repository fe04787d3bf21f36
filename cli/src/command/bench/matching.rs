//! `avsg bench match` measures the time of Stage One beside other ways to match, on the same steps.

use std::path::Path;

use crate::baseline::count_operator_hits;
use crate::draw::{self, Labels, Series, Shape};
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
use super::{Host, number, race, warn_of_skipped, with_ratio};
use crate::command::busy::{Disturbance, Watch};
use crate::command::geometry::{MachineKind, Rule, TableKind, TableOptions};
use crate::command::output::{self, Cell, Page, Sinks, Table};

/// Steps that run first and are not timed, because the caches, the branch predictors and the buffer
/// are cold.
const WARM_UP: usize = 20;
/// Steps of one contender's turn: so many that the caches hold its own table for most of the turn.
const BLOCK: usize = 25;

/// Options of `avsg bench match`.
#[derive(Args, Debug)]
#[command(
    after_help = "All contenders run the same steps in one run, in turns of 25 steps, so that noise affects all of \
                  them alike. The ids of a token are shuffled. The first 20 steps are not timed. Compare only \
                  ratios within one run. The times in the JSON are:\n  \
                  median_us        this operator on the chosen vector machine\n  \
                  emu_us           this operator on the vector machine emu, one lane at a time\n  \
                  scalar_us        the operator's table written by hand for a scalar core\n  \
                  dual_pointer_us  the previous step's rows as the buffer, matched by sort and two pointers\n  \
                  hashmap_lru_us   the standard HashMap and the lru crate\n  \
                  lru_crate_us     the lru crate without a HashMap\n\
                  They are medians over the timed steps. hit_rate is in percent and leaves out the first step."
)]
pub struct Options {
    #[command(flatten)]
    workload: Workload,
    /// K, the ids selected per token; from a trace with more, the K ids with the smallest hashes are
    /// kept, and a K above the trace's is skipped
    #[arg(long, value_name = "K,..", value_delimiter = ',', default_value = "256,512,1024,2048")]
    k: Vec<usize>,
    /// S, the slots per request and layer; powers of two from 64 to 32768; combinations with K above S
    /// are skipped
    #[arg(long, value_name = "S,..", value_delimiter = ',', default_value = "2048,8192")]
    slots: Vec<u32>,
    /// Kinds of hash table
    #[arg(
        long,
        value_enum,
        value_name = "T,..",
        value_delimiter = ',',
        default_value = "paper,wide"
    )]
    table: Vec<TableKind>,
    /// Links per slot of the wide table: 1, 2 or 4 [default: 4]
    #[arg(long, value_name = "N")]
    spread: Option<u32>,
    /// R, the links examined after the first; 0 to 15 [default: 3, or 7 with spread 2]
    #[arg(long, value_name = "R")]
    retries: Option<u32>,
    /// Lifetime rule: constant:L (least recently used; L 0 to 127, paper from 1), or frequency:LAMBDA
    /// (least frequently and recently used; LAMBDA 0.5 to 0.965, the decay of a use per step, wide
    /// only; frequency alone is frequency:0.87) [default: wide frequency:0.87 if K < S < 4*K, else
    /// constant:127; paper constant:16]
    #[arg(long, value_name = "RULE")]
    lifetime: Option<String>,
    /// Vector machine that runs the kernels; auto is the fastest that the CPU has
    #[arg(long, value_enum, default_value = "auto")]
    machine: MachineKind,
    /// Steps to time, 1 to 1000000; fewer if the trace is shorter
    #[arg(long, value_name = "N", default_value_t = 1000)]
    steps: usize,
    #[command(flatten)]
    race: race::RaceOptions,
    #[command(flatten)]
    sinks: Sinks,
}

#[derive(Serialize)]
struct Report {
    machine: Host,
    workload: String,
    disturbance: Disturbance,
    rows: Vec<Row>,
}

/// The times of all contenders at one geometry.
#[derive(Serialize)]
struct Row {
    k: usize,
    slots: u32,
    table: &'static str,
    spread: u32,
    #[serde(flatten)]
    rule: Rule,
    machine: String,
    steps: usize,
    /// In percent after the first step; null if no later step selects an id.
    hit_rate: Option<f64>,
    /// Median of this operator.
    median_us: f64,
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

/// A combination of K and a table that is measured.
struct Case {
    k: usize,
    params: Params,
    table: &'static str,
    rule: Rule,
}

impl Options {
    fn table(&self, table: TableKind) -> TableOptions {
        // If one run measures both tables, an option that only `wide` accepts applies to `wide` only.
        let skip_wide_options = table == TableKind::Paper && self.table.len() > 1;
        let frequency = self.lifetime.as_ref().is_some_and(|rule| rule.starts_with("frequency"));
        TableOptions {
            table,
            spread: self.spread.filter(|_| !skip_wide_options),
            retries: self.retries,
            lifetime: self.lifetime.clone().filter(|_| !(skip_wide_options && frequency)),
            primes: None,
        }
    }

    /// Returns the options that a race of whole batches shares with this bench.
    fn race_common(&self) -> race::Common<'_> {
        race::Common {
            workload: &self.workload,
            k: &self.k,
            slots: &self.slots,
            table: TableOptions {
                table: TableKind::Wide,
                spread: self.spread,
                retries: self.retries,
                lifetime: self.lifetime.clone(),
                primes: None,
            },
            machine: self.machine.choice(),
            steps: self.steps,
            sinks: &self.sinks,
        }
    }

    /// Returns the combinations that can be run, and names the others on standard error.
    fn combinations(&self, trace_k: usize) -> Result<Vec<Case>> {
        warn_of_skipped(&self.k, &self.slots, trace_k)?;
        let mut all = Vec::new();
        for &slots in &self.slots {
            for &table in &self.table {
                for &k in self.k.iter().filter(|&&k| k <= trace_k.min(slots as usize)) {
                    let name = if table == TableKind::Paper { "paper" } else { "wide" };
                    let options = self.table(table);
                    let params = options.params(k, 1, slots, 0)?;
                    all.push(Case { k, params, table: name, rule: options.rule(&params) });
                }
            }
        }
        Ok(all)
    }
}

/// Runs the measurement and prints it.
pub fn run(options: &Options) -> Result<()> {
    options.sinks.check(options.workload.path())?;
    if options.steps == 0 || options.steps > 1_000_000 {
        let limit = "it must be 1..=1000000";
        return Err(
            Error::invalid("--steps", options.steps, limit, "choose 1000, for example").into()
        );
    }
    if let Some(requests) = options.race.requests {
        return race::run(&options.race, requests, &options.race_common());
    }
    let trace = options.workload.load(options.steps + WARM_UP)?;
    if trace.steps <= WARM_UP {
        let limit =
            format!("it must be more than {WARM_UP}, because the first {WARM_UP} are not timed");
        return Err(
            Error::invalid("trace steps", trace.steps, limit, "record a longer trace").into()
        );
    }
    let combinations = options.combinations(trace.k)?;
    let bar = output::progress(combinations.len(), "match");
    let mut rows = Vec::new();
    let watch = Watch::start();
    for case in combinations {
        let machine = Machine::find(options.machine.choice())?;
        rows.push(measure(&trace.take_k(case.k)?, case, machine)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let spread = rows.iter().map(|row| row.time_spread).fold(f64::NAN, f64::max);
    let disturbance = watch.stop(rows.iter().map(|row| row.steps).sum(), spread);
    disturbance.warn();
    let (machine, workload) = (Host::detect(), options.workload.name());
    let report = Report { machine, workload, disturbance, rows };
    options.sinks.write(&report, page, chart)
}

fn measure(trace: &Trace, case: Case, machine: Machine) -> Result<Row> {
    let Case { params, table, rule, .. } = case;
    let params = &params;
    let emu = Machine::find(MachineChoice::Emu)?;
    let mut contenders = line_up(params, [machine, emu])?;
    let mut times = vec![Vec::with_capacity(trace.steps); contenders.len()];
    for (round, from) in (0..trace.steps).step_by(BLOCK).enumerate() {
        for turn in 0..contenders.len() {
            // The first contender of a block loads the ids into the caches, so the first one rotates.
            let index = (round + turn) % contenders.len();
            for step in from..trace.steps.min(from + BLOCK) {
                let time = Contender::time(&mut *contenders[index], trace.row(step, 0));
                if step >= WARM_UP {
                    times[index].push(time.as_secs_f64() * 1e6);
                }
            }
        }
    }
    let summaries: Vec<_> = times.iter_mut().map(|t| summary(t)).collect();
    Ok(Row {
        k: trace.k,
        slots: params.slots,
        table,
        spread: params.spread,
        rule,
        machine: machine.to_string(),
        steps: trace.steps - WARM_UP,
        hit_rate: count_operator_hits(trace, params, machine)?.percent(),
        median_us: summaries[0].median,
        time_spread: summaries[0].spread,
        trimmed_mean_us: summaries[0].trimmed_mean,
        mean_us: summaries[0].mean,
        emu_us: summaries[1].median,
        scalar_us: summaries[2].median,
        dual_pointer_us: summaries[3].median,
        hashmap_lru_us: summaries[4].median,
        lru_crate_us: summaries[5].median,
    })
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
    let mut own =
        Table::new(["K", "S", "table", "machine", "hit rate, %", "median, us", "trimmed mean, us"])
            .titled("AVSG");
    let columns = ["K", "S", "table", "AVSG, us"].map(str::to_owned).into_iter();
    let others = OTHERS.iter().map(|(name, _)| format!("{name}, us"));
    let mut beside = Table::new(columns.chain(others)).titled("AVSG beside other ways to match");
    for row in &report.rows {
        let geometry = || [row.k.into(), row.slots.into(), row.table.into()].into_iter();
        own.add_row(geometry().chain([
            row.machine.clone().into(),
            row.hit_rate.map_or_else(Cell::none, |rate| Cell::number(rate, 2)),
            number(row.median_us),
            number(row.trimmed_mean_us),
        ]));
        let medians = OTHERS.iter().map(|(_, median)| median(row));
        let others = medians.map(|us| with_ratio(us, us / row.median_us));
        beside.add_row(geometry().chain([number(row.median_us)]).chain(others));
    }
    page.table(own);
    page.table(beside);
    let steps = output::count(report.rows.first().map_or(0, |row| row.steps), "step");
    page.text(format!(
        "The times are medians over {steps}, except for the trimmed mean, which leaves out the fastest and the \
         slowest tenth. (x) is the ratio of a time to that of AVSG."
    ));
    page.text(format!("times of AVSG: {}", report.disturbance.line()));
    page
}

/// Draws for each table and S one chart of the times over K. Machine emu is left out, because its times
/// would leave no room for the others.
fn chart(folder: &Path, report: &Report) -> Result<()> {
    let mut kinds: Vec<(&str, u32)> = report.rows.iter().map(|r| (r.table, r.slots)).collect();
    kinds.dedup();
    let own: (&str, Median) = ("AVSG", |row| row.median_us);
    for (table, slots) in kinds {
        let rows = || report.rows.iter().filter(|r| (r.table, r.slots) == (table, slots));
        let columns = std::iter::once(&own).chain(&OTHERS[1..]);
        let series = columns.map(|&(name, median)| Series {
            name: name.into(),
            shape: Shape::Joined,
            points: rows().map(|row| (row.k as f64, median(row))).collect(),
        });
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
