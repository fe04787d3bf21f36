//! `avsg bench transfer` measures the throughput of Stage Two beside plain copy loops.

use std::collections::BTreeMap;

use anyhow::Result;
use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::geometry;
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;
use avsg::system::cpus::MAX_CORES;
use avsg_measure::splitmix::SplitMix64;
use clap::Args;
use serde_json::json;

use super::{host, short, table};
use crate::checks::{in_range, require};
use crate::command::busy::Watch;
use crate::command::output::{self, OutputOptions, Page};
use crate::stats::Summary;
use crate::throughput;

/// Bytes of memory that this bench takes at most.
const MAX_BYTES: usize = 2_000_000_000;
/// Requests with slots: so many that the slots exceed the caches. The last one is for the plan that wakes
/// the workers.
const STATES: usize = 33;

#[derive(Args, Debug)]
#[command(
    after_help = "The engine's transfer of cold plans (all K ids of 8 requests miss) is compared with plain loops over \
                  random rows on as many threads, in turns. Times are first deciles, because an interruption of one \
                  core delays the whole transfer. At most 2 GB of memory are taken. avsg-research paper models other \
                  ways to spread the misses over cores."
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
    /// Bytes of a KV row that is one segment, 1 to 1048576
    #[arg(long, value_name = "BYTES,..", value_delimiter = ',', default_value = "1152,656")]
    row_bytes: Vec<usize>,
    /// Transfers of each contender, 1 to 10000
    #[arg(long, value_name = "N", default_value_t = 45)]
    repeats: usize,
    #[command(flatten)]
    output: OutputOptions,
}

impl Options {
    fn check(&self) -> Result<()> {
        for &bytes in &self.row_bytes {
            in_range("--row-bytes", bytes, 1..=1 << 20, "choose 1152 or 656, for example")?;
        }
        if let Some(cores) = self.cores {
            in_range("--cores", cores, 1..=MAX_CORES, "leave it out to use all CPUs")?;
        }
        in_range("--repeats", self.repeats, 1..=10_000, "choose 45, for example")?;
        let rows = self.k..=1 << 24;
        Ok(in_range("--rows-in-pool", self.rows_in_pool, rows, "choose many times K")?)
    }

    /// Creates the engine for rows of `row_bytes` bytes; refuses one that takes more than [`MAX_BYTES`].
    fn engine(&self, row_bytes: usize) -> Result<Engine> {
        let k = u32::try_from(self.k).unwrap_or(u32::MAX);
        // A small deployment has about twice as many slots as selected ids.
        let slots = k.saturating_mul(2).checked_next_power_of_two().unwrap_or(u32::MAX).max(64);
        let params = Params::wide(k, 1, slots);
        geometry::check(&params)?;
        let mut config = Config::new(params, STATES);
        config.cores = self.cores.unwrap_or(config.cores);
        let format = RowFormat::single(row_bytes)?;
        let pool = PoolConfig::new(1, self.rows_in_pool, format);
        let (rows, words) = Engine::bytes_needed(&config, &pool, None)?;
        let bytes = HostPool::plan_bytes(&pool)?.saturating_add(rows).saturating_add(words);
        let limit = format!("this bench takes at most {MAX_BYTES} bytes");
        let remedy = "lower --rows-in-pool, --k or --row-bytes";
        require(bytes <= MAX_BYTES, "memory", format!("{bytes} bytes"), limit, remedy)?;
        Ok(Engine::new(config, HostPool::new(&pool)?)?)
    }
}

pub fn run(options: &Options) -> Result<()> {
    options.check()?;
    options.output.check([])?;
    let mut order: Vec<i32> = (0..options.rows_in_pool as i32).collect();
    SplitMix64::new(3).shuffle(&mut order);
    let bar = output::progress(options.row_bytes.len(), "transfer");
    let watch = Watch::start();
    let (mut rows, mut spreads) = (Vec::new(), Vec::new());
    for &row_bytes in &options.row_bytes {
        let mut engine = options.engine(row_bytes)?;
        let (copied, mut loops) = throughput::measure(&mut engine, &order, options.repeats)?;
        let own = loops.pop().unwrap_or_default();
        bar.inc(1);
        let rate = |(_, us): &(String, Summary)| (copied * row_bytes) as f64 / us.p10 / 1e3;
        let best = loops.iter().max_by(|a, b| rate(a).total_cmp(&rate(b))).unwrap_or(&own);
        spreads.push(own.1.spread());
        rows.push(json!({
            "row_bytes": row_bytes,
            // Rows that a run copies.
            "rows": copied,
            "cores": engine.config().cores,
            "copier": own.0,
            // Throughputs in 10^9 bytes per second, at the first decile of the times.
            "engine_gbs": rate(&own),
            "time_spread": own.1.spread(),
            "memcpy_gbs": rate(&loops[0]),
            "best_loop_gbs": rate(best),
            "best_loop": best.0,
            "percent_of_best": 100.0 * rate(&own) / rate(best),
            "loops": loops.iter().map(|all| (all.0.clone(), rate(all))).collect::<BTreeMap<_, _>>(),
        }));
    }
    let disturbance = watch.stop(options.repeats * rows.len(), spreads);
    drop(bar);
    let (machine, words) = host();
    let mut page = Page::default();
    let first = &rows[0];
    let [own, memcpy, percent] = ["engine_gbs", "memcpy_gbs", "percent_of_best"]
        .map(|key| first[key].as_f64().unwrap_or(f64::NAN));
    page.text(format!(
        "Rows of {} bytes are copied at {} GB/s: {percent:.0} % of the best plain loop, {} times a loop of memcpy.",
        first["row_bytes"],
        short(own),
        short(own / memcpy)
    ));
    let columns = "row bytes | Stage Two, GB/s | its copier | memcpy loop, GB/s | best loop, GB/s | its copier | \
                   Stage Two, % of best";
    let keys = "row_bytes engine_gbs copier memcpy_gbs best_loop_gbs best_loop percent_of_best";
    let table = table(columns, keys, &rows);
    page.table(&table);
    let cores = output::count(first["cores"].as_u64().unwrap_or(1) as usize, "copying core");
    page.text(format!("measured  {words}, {cores}, {} rows at once", first["rows"]));
    page.text(format!("times     {}", disturbance.line()));
    let report = json!({
        "machine": machine,
        "k": options.k,
        "disturbance": disturbance,
        "throughput": rows,
    });
    options.output.write(&report, || page)
}
