//! `avsg bench transfer`: Stage Two's throughput, and its strategies.

use std::path::Path;

use crate::draw::{self, Series};
use anyhow::Result;
use avsg::buffer::BufferConfig;
use avsg::cpu::worker_pool::WorkerPool;
use avsg::cpus::{MAX_CORES, allowed_cpus};
use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;
use avsg::{Error, geometry};
use avsg_testkit::splitmix::SplitMix64;
use clap::Args;
use serde::Serialize;

use super::model::{Model, PAPER_CORES, Published, published};
use super::strategies::{Bench, Row};
use super::throughput::{self, Throughput};
use super::{Host, folder, short};
use crate::command::output::{self, Sinks};

/// What this bench takes at most.
const MOST_BYTES: usize = 2_000_000_000;

/// What to measure.
#[derive(Args, Debug)]
#[command(
    after_help = "First the engine's transfer of cold plans (all K ids of 8 requests miss) beside plain loops over\n\
                  random rows with as many threads, in turns. Then three ways to spread misses over cores:\n  \
                  S1  whole requests to cores\n  \
                  S2  equal shares of the selected positions, hits included\n  \
                  S3  equal shares of the misses (this operator)\n\
                  measured with the cores of this machine, and modelled for the paper's device: a core takes 3 us\n\
                  and 0.42 us for each 1152-byte row, the link gives at most 105 GB/s. Row counts come from the\n\
                  operator's own code. The paper's own table, 24 rows, stands beside the model at the end."
)]
pub struct Options {
    /// Ids of a request
    #[arg(long, value_name = "K", default_value_t = 2048)]
    k: usize,
    /// Copying cores to measure with [default: the CPUs]
    #[arg(long, value_name = "C")]
    cores: Option<usize>,
    /// Copying cores of the modelled device
    #[arg(long, value_name = "C", default_value_t = PAPER_CORES)]
    model_cores: usize,
    /// Rows of the host pool; many times the cache, for an honest figure
    #[arg(long, value_name = "ROWS", default_value_t = 262_144)]
    rows_in_pool: usize,
    /// Row sizes for the throughput; strategies are measured with the first
    #[arg(long, value_name = "BYTES,..", value_delimiter = ',', default_value = "1152,656")]
    row_bytes: Vec<usize>,
    /// Batch sizes for the strategies
    #[arg(long, value_name = "B,..", value_delimiter = ',', default_value = "1,2,4,8,16,32")]
    requests: Vec<usize>,
    /// Percent of the selected ids that are resident
    #[arg(long, value_name = "PERCENT,..", value_delimiter = ',', default_value = "0,25,50,75")]
    reuse: Vec<u32>,
    /// Transfers of each kind, three times as many for the throughput; the time that a tenth of them
    /// undercut counts, as an interruption of one core delays all
    #[arg(long, value_name = "N", default_value_t = 15)]
    repeats: usize,
    #[command(flatten)]
    sinks: Sinks,
}

#[derive(Serialize)]
struct Report {
    machine: Host,
    k: usize,
    throughput: Vec<Throughput>,
    cores: usize,
    model: Model,
    strategies: Vec<Row>,
    published: Published,
}

impl Options {
    fn check(&self) -> Result<()> {
        let range = |what, value: usize, low: usize, high: usize, remedy| {
            let limit = format!("it must be {low}..={high}");
            if (low..=high).contains(&value) {
                return Ok(());
            }
            Err(Error::invalid(what, value, limit, remedy))
        };
        for &requests in &self.requests {
            range("--requests", requests, 1, 1024, "choose batch sizes in that range")?;
        }
        for &reuse in &self.reuse {
            range("--reuse", reuse as usize, 0, 99, "something must be missing to be copied")?;
        }
        for &bytes in &self.row_bytes {
            range("--row-bytes", bytes, 1, 1 << 20, "1152 and 656 are common")?;
        }
        if let Some(cores) = self.cores {
            range("--cores", cores, 1, MAX_CORES, "leave it out to take the CPUs")?;
        }
        range("--repeats", self.repeats, 1, 10_000, "15 is a good number")?;
        range("--model-cores", self.model_cores, 1, 1024, "the paper's device has 40")?;
        range("--rows-in-pool", self.rows_in_pool, self.k, 1 << 22, "make it many times K")?;
        Ok(())
    }

    /// Enough for the largest batch, and so many that their slots outgrow the caches; and one that wakes
    /// the workers.
    fn states(&self) -> usize {
        self.requests.iter().copied().fold(32, usize::max) + 1
    }

    /// The engine for rows of one size, if it fits the limit.
    fn engine(&self, row_bytes: usize) -> Result<Engine> {
        let k = u32::try_from(self.k).unwrap_or(u32::MAX);
        // Twice the selection, as a small deployment would have it.
        let slots = k.saturating_mul(2).checked_next_power_of_two().unwrap_or(u32::MAX).max(64);
        let params = Params::wide(k, 1, slots);
        geometry::check(&params)?;
        let mut config = Config::new(params, self.states());
        config.cores = self.cores.unwrap_or(config.cores);
        let format = RowFormat::single(row_bytes)?;
        let pool = PoolConfig::new(1, self.rows_in_pool, format.clone());
        let buffer =
            BufferConfig { states: config.states, layers: 1, slots: slots as usize, format };
        let (rows, words) = Engine::bytes_needed(&config, &buffer)?;
        let bytes = HostPool::plan_bytes(&pool)?.saturating_add(rows).saturating_add(words);
        if bytes > MOST_BYTES {
            let limit = format!("this bench takes at most {MOST_BYTES}");
            let remedy = "lower --rows-in-pool, --requests, --k or --row-bytes";
            return Err(Error::invalid("memory", format!("{bytes} bytes"), limit, remedy).into());
        }
        Ok(Engine::new(config, HostPool::new(&pool)?)?)
    }
}

/// Runs it.
pub fn run(options: &Options) -> Result<()> {
    options.check()?;
    let mut order: Vec<i32> = (0..options.rows_in_pool as i32).collect();
    SplitMix64::new(3).shuffle(&mut order);
    let cells = options.requests.len() * options.reuse.len() * 2;
    let bar = output::progress(options.row_bytes.len() + cells, "transfer");
    let (mut throughput, mut strategies) = (Vec::new(), Vec::new());
    let model = Model::new(options.model_cores);
    for (index, &row_bytes) in options.row_bytes.iter().enumerate() {
        let mut engine = options.engine(row_bytes)?;
        throughput.push(throughput::measure(&mut engine, &order, 3 * options.repeats)?);
        bar.inc(1);
        if index > 0 {
            continue;
        }
        let workers = WorkerPool::new(engine.config().cores)?;
        let (repeats, engine) = (options.repeats, &engine);
        let mut bench = Bench { engine, workers, order: &order, model, repeats };
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
    let cores = options.cores.unwrap_or_else(|| allowed_cpus().len().max(1));
    let (machine, k, published) = (Host::here(), options.k, published()?);
    let report = Report { machine, k, throughput, cores, model, strategies, published };
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
    println!("{}, {} copying cores", report.machine.cpu, report.cores);
    let mut table = output::table([
        "row bytes",
        "rows",
        "Stage Two GB/s",
        "copier",
        "memcpy loop",
        "best loop",
        "which",
        "% of best",
    ]);
    for row in &report.throughput {
        table.add_row([
            row.row_bytes.to_string(),
            row.rows.to_string(),
            short(row.engine_gbs),
            row.copier.clone(),
            short(row.memcpy_gbs),
            short(row.best_loop_gbs),
            row.best_loop.clone(),
            format!("{:.1}", row.percent_of_best),
        ]);
    }
    println!("{table}");
    let Model { cores, t0_us, row_us, link_gbs, .. } = report.model;
    println!(
        "S1 / S2 / S3: {} cores measured; {cores} cores modelled with {t0_us} us + {row_us} us a row, link {link_gbs} GB/s",
        report.cores
    );
    let mut table = output::table([
        "hits",
        "reuse %",
        "B",
        "measured GB/s",
        "modelled us",
        "modelled GB/s",
        "S3 over S1",
        "S3 over S2",
    ]);
    for row in &report.strategies {
        let three = |values: [f64; 3]| values.map(short).join(" / ");
        table.add_row([
            row.hits.to_owned(),
            row.reuse.to_string(),
            row.requests.to_string(),
            three(row.measured_gbs),
            three(row.model_us),
            three(row.model_gbs),
            format!("{}x", short(row.model_speedup[0])),
            format!("{}x", short(row.model_speedup[1])),
        ]);
    }
    println!("{table}");
    println!(
        "the paper's table beside the model of its {PAPER_CORES} cores, hits contiguous, S1 / S2 / S3"
    );
    let mut table = output::table(["reuse %", "B", "the paper GB/s", "modelled GB/s", "error %"]);
    for row in &report.published.rows {
        let error = |at: usize| 100.0 * (row.model_gbs[at] / row.paper_gbs[at] - 1.0);
        table.add_row([
            row.reuse.to_string(),
            row.requests.to_string(),
            row.paper_gbs.map(short).join(" / "),
            row.model_gbs.map(short).join(" / "),
            [0, 1, 2].map(|at| format!("{:+.1}", error(at))).join(" / "),
        ]);
    }
    println!("{table}");
    let rms = report.published.rms_percent.map(|rms| format!("{rms:.1}")).join(" / ");
    println!("root mean square of the model's errors: {rms} %");
}

/// Modelled throughput over B, one chart for each reuse and layout.
fn chart(folder: &Path, report: &Report) -> Result<()> {
    let mut kinds: Vec<(u32, &str)> = report.strategies.iter().map(|r| (r.reuse, r.hits)).collect();
    kinds.dedup();
    for (reuse, hits) in kinds {
        let rows = || report.strategies.iter().filter(|r| (r.reuse, r.hits) == (reuse, hits));
        let line = |name: &str, at: usize| Series {
            name: name.into(),
            points: rows().map(|r| (r.requests as f64, r.model_gbs[at])).collect(),
        };
        let names = ["S1, requests", "S2, positions", "S3, misses"];
        let series: Vec<_> = names.iter().enumerate().map(|(at, name)| line(name, at)).collect();
        let cores = report.model.cores;
        let title = format!("Transfer modelled for {cores} cores, {reuse} % reuse, hits {hits}");
        let path = folder.join(format!("transfer-{hits}-{reuse}.svg"));
        draw::lines(path, &title, "requests", "GB/s", &series)?;
    }
    Ok(())
}
