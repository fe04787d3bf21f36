//! `avsg bench transfer` measures the throughput of Stage Two and compares its strategies.

use std::path::Path;

use crate::draw::{self, Labels, Series, Shape};
use anyhow::Result;
use avsg::cpu::worker_pool::{WorkerConfig, WorkerPool};
use avsg::cpus::{MAX_CORES, allowed_cpu_count};
use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::geometry;
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;
use avsg_testkit::splitmix::SplitMix64;
use clap::Args;
use serde::Serialize;

use super::strategies::{Bench, Row, STRATEGIES};
use super::throughput::{self, Throughput};
use super::{Host, number};
use crate::checks::{in_range, require};
use crate::command::busy::{Disturbance, Watch};
use crate::command::output::{self, Cell, Page, Sinks, Table};

/// Bytes of memory that this bench takes at most.
const MAX_BYTES: usize = 2_000_000_000;

#[derive(Args, Debug)]
#[command(
    after_help = "The first table compares the engine's transfer of cold plans (all K ids of 8 requests miss) with \
                  plain loops over random rows on as many threads, in turns. The second table compares three ways \
                  to spread the misses over cores:\n  \
                  S1  whole requests to cores\n  \
                  S2  equal shares of the selected positions, hits included\n  \
                  S3  equal shares of the misses (this operator)\n\
                  All times are first deciles, because an interruption of one core delays the whole transfer. At most \
                  2 GB of memory are taken. avsg-research paper models the strategies on the paper's device."
)]
pub struct Options {
    /// K, the ids selected per token (one token per request); 1 to 16384
    #[arg(long, value_name = "K", default_value_t = 2048)]
    k: usize,
    /// C, the cores that copy; 1 to 1024 [default: the CPUs of this machine]
    #[arg(long, value_name = "C")]
    cores: Option<usize>,
    /// Rows of the host pool, K to 16777216; choose many times what the caches hold
    #[arg(long, value_name = "ROWS", default_value_t = 262_144)]
    rows_in_pool: usize,
    /// Bytes of a KV row that is one segment, 1 to 1048576; the strategies are measured with the first
    #[arg(long, value_name = "BYTES,..", value_delimiter = ',', default_value = "1152,656")]
    row_bytes: Vec<usize>,
    /// B, the requests of a batch for the strategies; 1 to 1024
    #[arg(long, value_name = "B,..", value_delimiter = ',', default_value = "1,2,4,8,16,32")]
    requests: Vec<usize>,
    /// Percent of the selected ids that are resident, 0 to 99
    #[arg(long, value_name = "PERCENT,..", value_delimiter = ',', default_value = "0,25,50,75")]
    reuse: Vec<u32>,
    /// Transfers of each strategy, 1 to 10000; the first table takes three times as many
    #[arg(long, value_name = "N", default_value_t = 15)]
    repeats: usize,
    #[command(flatten)]
    sinks: Sinks,
}

#[derive(Serialize)]
struct Report {
    machine: Host,
    k: usize,
    disturbance: Disturbance,
    throughput: Vec<Throughput>,
    cores: usize,
    strategies: Vec<Row>,
}

impl Options {
    fn check(&self) -> Result<()> {
        for &requests in &self.requests {
            in_range("--requests", requests, 1..=1024, "choose batch sizes in this range")?;
        }
        for &reuse in &self.reuse {
            let remedy = "choose 75, for example; only misses are copied";
            in_range("--reuse", reuse, 0..=99, remedy)?;
        }
        for &bytes in &self.row_bytes {
            in_range("--row-bytes", bytes, 1..=1 << 20, "choose 1152 or 656, for example")?;
        }
        if let Some(cores) = self.cores {
            in_range("--cores", cores, 1..=MAX_CORES, "leave it out to use all CPUs")?;
        }
        in_range("--repeats", self.repeats, 1..=10_000, "choose 15, for example")?;
        let rows = self.k..=1 << 24;
        Ok(in_range("--rows-in-pool", self.rows_in_pool, rows, "choose many times K")?)
    }

    /// Returns the number of states: enough for the largest batch, at least 32 so that their slots
    /// exceed the caches, and one more for the plan that wakes the workers.
    fn states(&self) -> usize {
        self.requests.iter().copied().fold(32, usize::max) + 1
    }

    /// Creates the engine for rows of `row_bytes` bytes; refuses one that takes more than [`MAX_BYTES`].
    fn engine(&self, row_bytes: usize) -> Result<Engine> {
        let k = u32::try_from(self.k).unwrap_or(u32::MAX);
        // A small deployment has about twice as many slots as selected ids.
        let slots = k.saturating_mul(2).checked_next_power_of_two().unwrap_or(u32::MAX).max(64);
        let params = Params::wide(k, 1, slots);
        geometry::check(&params)?;
        let mut config = Config::new(params, self.states());
        config.cores = self.cores.unwrap_or(config.cores);
        let format = RowFormat::single(row_bytes)?;
        let pool = PoolConfig::new(1, self.rows_in_pool, format);
        let (rows, words) = Engine::bytes_needed(&config, &pool)?;
        let bytes = HostPool::plan_bytes(&pool)?.saturating_add(rows).saturating_add(words);
        let limit = format!("this bench takes at most {MAX_BYTES} bytes");
        let remedy = "lower --rows-in-pool, --requests, --k or --row-bytes";
        require(bytes <= MAX_BYTES, "memory", format!("{bytes} bytes"), limit, remedy)?;
        Ok(Engine::new(config, HostPool::new(&pool)?)?)
    }
}

pub fn run(options: &Options) -> Result<()> {
    options.check()?;
    options.sinks.check(None)?;
    let mut order: Vec<i32> = (0..options.rows_in_pool as i32).collect();
    SplitMix64::new(3).shuffle(&mut order);
    let cells = options.requests.len() * options.reuse.len() * 2;
    let bar = output::progress(options.row_bytes.len() + cells, "transfer");
    let (mut throughput, mut strategies) = (Vec::new(), Vec::new());
    let watch = Watch::start();
    for (index, &row_bytes) in options.row_bytes.iter().enumerate() {
        let mut engine = options.engine(row_bytes)?;
        throughput.push(throughput::measure(&mut engine, &order, 3 * options.repeats)?);
        bar.inc(1);
        if index > 0 {
            continue;
        }
        let workers = WorkerPool::new(&WorkerConfig::new(engine.threads().unwrap_or(1)))?;
        let (repeats, engine) = (options.repeats, &engine);
        let mut bench = Bench { engine, workers, order: &order, repeats };
        for scattered in [false, true] {
            for &reuse in &options.reuse {
                for &requests in &options.requests {
                    strategies.push(bench.cell(requests, reuse, scattered)?);
                    bar.inc(1);
                }
            }
        }
    }
    bar.finish_and_clear();
    let cores = options.cores.unwrap_or_else(allowed_cpu_count);
    let spreads = throughput.iter().map(|row: &Throughput| row.time_spread);
    let disturbance = watch.stop(3 * options.repeats * throughput.len(), spreads);
    let (machine, k) = (Host::detect(), options.k);
    let report = Report { machine, k, disturbance, throughput, cores, strategies };
    options.sinks.write(&report, page, chart)
}

fn page(report: &Report) -> Page {
    let mut page = Page::default();
    let cores = output::count(report.cores, "copying core");
    page.text(format!("{}, {cores}", report.machine.cpu));
    let mut table = Table::new([
        "row bytes",
        "rows",
        "Stage Two, GB/s",
        "its copier",
        "memcpy loop, GB/s",
        "best loop, GB/s",
        "copier of the best loop",
        "Stage Two, % of best",
    ])
    .titled("Stage Two beside plain copy loops");
    for row in &report.throughput {
        table.add_row([
            row.row_bytes.into(),
            row.rows.into(),
            number(row.engine_gbs),
            row.copier.clone().into(),
            number(row.memcpy_gbs),
            number(row.best_loop_gbs),
            row.best_loop.clone().into(),
            Cell::number(row.percent_of_best, 1),
        ]);
    }
    page.table(table);
    let columns = ["layout of hits", "reuse, %", "B"].map(str::to_owned).into_iter();
    let throughputs = STRATEGIES.map(|(name, _)| format!("{name}, GB/s"));
    let mut table = Table::new(columns.chain(throughputs)).titled("S1, S2 and S3");
    for row in &report.strategies {
        let first = [row.hits.into(), row.reuse.into(), row.requests.into()];
        table.add_row(first.into_iter().chain(row.measured_gbs.map(number)));
    }
    page.table(table);
    page.text(format!("times of Stage Two: {}", report.disturbance.line()));
    page
}

/// Draws for each reuse and layout of hits one chart of the throughput over B.
fn chart(folder: &Path, report: &Report) -> Result<()> {
    let mut kinds: Vec<(u32, &str)> = report.strategies.iter().map(|r| (r.reuse, r.hits)).collect();
    kinds.dedup();
    for (reuse, hits) in kinds {
        let rows = || report.strategies.iter().filter(|r| (r.reuse, r.hits) == (reuse, hits));
        let series = |(at, (name, _)): (usize, &(&str, _))| Series {
            name: (*name).into(),
            shape: Shape::Joined,
            points: rows().map(|r| (r.requests as f64, r.measured_gbs[at])).collect(),
        };
        let series: Vec<_> = STRATEGIES.iter().enumerate().map(series).collect();
        let cores = output::count(report.cores, "core");
        let labels = Labels {
            title: &format!("Throughput of three ways to spread the misses over {cores}"),
            subject: &format!("{reuse} % of the ids are hits, layout of hits: {hits}"),
            x: "B, requests",
            y: "copied bytes, GB/s",
        };
        draw::chart(folder.join(format!("transfer-{hits}-{reuse}.svg")), &labels, &series)?;
    }
    Ok(())
}
