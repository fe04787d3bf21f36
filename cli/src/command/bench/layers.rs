//! `avsg bench layers` measures calls for all layers of a model at once: transfers and appends beside a call
//! for each layer, and copies of a state beside a parallel `memcpy` of the same rows.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use avsg::cpu::worker_pool::{Stage, WorkerConfig, WorkerPool};
use avsg::cpus::MAX_CORES;
use avsg::device::params::Params;
use avsg::device::stage_two::share_start;
use avsg::engine::{Config, Engine, Fresh, Load};
use avsg::plan::Plan;
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;
use avsg_testkit::batch::OwnedBatch;
use clap::Args;
use serde::Serialize;

use super::stats::{Summary, in_turns, us_since};
use super::{Host, number, with_ratio};
use crate::checks::{in_range, require};
use crate::command::busy::{Disturbance, Watch};
use crate::command::output::{self, Cell, OutputOptions, Page, Table};

/// Bytes of memory that this bench takes at most.
const MAX_BYTES: usize = 8_000_000_000;
/// The pause before each turn, in which the idle threads fall asleep.
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Args, Debug)]
#[command(
    after_help = "The first table compares one call for all layers with a call for each layer, on the same batches in \
                  turns. The second compares a fork of a state whose slots all hold rows with plain copies of the same \
                  rows, one long memcpy for each layer, state and thread. Times are medians."
)]
pub struct Options {
    /// Layers of the model, 1 to 256
    #[arg(long, value_name = "N", default_value_t = 61)]
    layers: usize,
    /// K, the ids selected per token (one token per request); 1 to S
    #[arg(long, value_name = "K", default_value_t = 1024)]
    k: usize,
    /// S, the slots of a state and layer
    #[arg(long, value_name = "S", default_value_t = 2048)]
    slots: u32,
    /// B, the requests of a batch, 1 to 64
    #[arg(long, value_name = "B", default_value_t = 2)]
    requests: usize,
    /// Misses of each request in a step, 1 to K
    #[arg(long, value_name = "N", default_value_t = 20)]
    misses: usize,
    /// The states that one call copies a state to, 1 to 64 each
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2")]
    copies: Vec<usize>,
    /// Bytes of a KV row that is one segment, 1 to 65536
    #[arg(long, value_name = "BYTES", default_value_t = 1152)]
    row_bytes: usize,
    /// C, the cores that copy; 1 to 1024 [default: the CPUs of this machine]
    #[arg(long, value_name = "C")]
    cores: Option<usize>,
    /// Times of each figure, 1 to 10000
    #[arg(long, value_name = "N", default_value_t = 41)]
    repeats: usize,
    #[command(flatten)]
    output: OutputOptions,
}

#[derive(Serialize)]
struct Report {
    machine: Host,
    layers: usize,
    requests: usize,
    misses: usize,
    row_bytes: usize,
    threads: usize,
    disturbance: Disturbance,
    calls: Vec<Calls>,
    forks: Vec<Fork>,
}

/// The times of a step's calls for all layers, in microseconds.
#[derive(Serialize)]
struct Calls {
    call: &'static str,
    rows_per_layer: usize,
    each_layer_us: f64,
    one_call_us: f64,
    /// The first of the two times divided by the second.
    ratio: f64,
    time_spread: f64,
}

/// A fork beside plain copies of the same rows.
#[derive(Serialize)]
struct Fork {
    copies: usize,
    rows: usize,
    fork_us: f64,
    fork_gbs: f64,
    memcpy_us: f64,
    memcpy_gbs: f64,
    /// The throughput of the fork in percent of that of the plain copies.
    percent_of_memcpy: f64,
    time_spread: f64,
}

impl Options {
    fn check(&self) -> Result<()> {
        in_range("--layers", self.layers, 1..=256, "choose those of the model")?;
        in_range("--requests", self.requests, 1..=64, "choose 2, for example")?;
        in_range("--misses", self.misses, 1..=self.k, "choose 20, for example")?;
        in_range("--row-bytes", self.row_bytes, 1..=65_536, "choose 1152 or 656, for example")?;
        in_range("--repeats", self.repeats, 1..=10_000, "choose 41, for example")?;
        for &copies in &self.copies {
            in_range("--copies", copies, 1..=64, "choose 1 and 2, for example")?;
        }
        let cores = self.cores.unwrap_or(1);
        Ok(in_range("--cores", cores, 1..=MAX_CORES, "leave it out to use all CPUs")?)
    }

    /// Returns the rows of each layer, which are those of a state and some more.
    fn rows(&self) -> usize {
        2 * self.slots as usize + 2 * self.k
    }

    /// Creates the engine; refuses one that takes more than [`MAX_BYTES`].
    fn engine(&self) -> Result<Engine> {
        let k = u32::try_from(self.k).unwrap_or(u32::MAX);
        let states = self.copies.iter().map(|copies| copies + 1).fold(self.requests, usize::max);
        let mut config = Config::new(Params::wide(k, 1, self.slots), states);
        config.cores = self.cores.unwrap_or(config.cores);
        let pool = PoolConfig::new(self.layers, self.rows(), RowFormat::single(self.row_bytes)?);
        let (slots, tables) = Engine::bytes_needed(&config, &pool)?;
        let bytes = HostPool::plan_bytes(&pool)?.saturating_add(slots).saturating_add(tables);
        let limit = format!("this bench takes at most {MAX_BYTES} bytes");
        let remedy = "lower --layers, --slots, --copies or --row-bytes";
        require(bytes <= MAX_BYTES, "memory", format!("{bytes} bytes"), limit, remedy)?;
        Ok(Engine::new(config, HostPool::new(&pool)?)?)
    }
}

/// The batches of the transfers and appends.
struct Steps {
    batch: OwnedBatch,
    plan: Plan,
    layers: Vec<usize>,
    /// A fresh row for each request, which all layers share.
    row: Vec<u8>,
    next: usize,
    rows: usize,
    misses: usize,
}

impl Steps {
    /// Returns batches of requests whose states hold the first K ids.
    fn new(engine: &mut Engine, options: &Options) -> Result<Self> {
        let (k, rows) = (options.k, options.rows());
        let mut batch = OwnedBatch::uniform(k, options.requests, 1, rows);
        for ids in batch.ids.chunks_mut(k) {
            ids.iter_mut().enumerate().for_each(|(at, id)| *id = at as i32);
        }
        let mut plan = engine.new_plan(options.requests, options.requests)?;
        let layers: Vec<usize> = (0..options.layers).collect();
        engine.plan(&batch.batch(), &mut plan)?;
        engine.transfer_layers(&mut plan, &layers, None)?;
        let row = vec![7; options.requests * options.row_bytes];
        Ok(Self { batch, plan, layers, row, next: k, rows, misses: options.misses })
    }

    /// Plans a batch in which some ids of each request miss.
    fn plan(&mut self, engine: &mut Engine) -> Result<()> {
        if self.next + self.misses > self.rows {
            self.next = self.batch.k;
        }
        let new = self.next as i32..(self.next + self.misses) as i32;
        self.next += self.misses;
        for ids in self.batch.ids.chunks_mut(self.batch.k) {
            ids[..self.misses].iter_mut().zip(new.clone()).for_each(|(id, new)| *id = new);
        }
        Ok(engine.plan(&self.batch.batch(), &mut self.plan)?)
    }

    /// Transfers the plan to all layers, in one call or in a call for each, and returns the microseconds.
    fn transfer(&mut self, engine: &mut Engine, one_call: bool) -> Result<f64> {
        thread::sleep(PAUSE);
        self.plan(engine)?;
        let start = Instant::now();
        if one_call {
            engine.transfer_layers(&mut self.plan, &self.layers, None)?;
        } else {
            for &layer in &self.layers {
                engine.transfer(&mut self.plan, layer, None)?;
            }
        }
        Ok(us_since(start))
    }

    /// Appends a row of each request to all layers, and returns the microseconds.
    fn append(&mut self, engine: &mut Engine, one_call: bool) -> Result<f64> {
        let mut batch = self.batch.clone();
        for (at, (stable, seq)) in (0..).zip(batch.stable.iter_mut().zip(&mut batch.seq)) {
            (*stable, *seq) = (at, at + 1);
        }
        let all = vec![&self.row[..]; self.layers.len()];
        thread::sleep(PAUSE);
        let start = Instant::now();
        if one_call {
            engine.append_layers(&batch.batch(), &self.layers, &Fresh { segments: &all })?;
        } else {
            for &layer in &self.layers {
                engine.append(&batch.batch(), layer, &Fresh { segments: &all[..1] })?;
            }
        }
        Ok(us_since(start))
    }
}

/// Returns the row of one kind of call, of which `run` makes those of a step and returns the microseconds.
fn calls(
    call: &'static str,
    (repeats, rows_per_layer): (usize, usize),
    mut run: impl FnMut(bool) -> Result<f64>,
) -> Result<Calls> {
    let times = in_turns(repeats, 2, |_, contender, times| {
        times.push(run(contender == 1)?);
        Ok(())
    })?;
    let [each, one] = [times[0].median, times[1].median];
    let time_spread = times[0].spread.max(times[1].spread);
    let (each_layer_us, one_call_us, ratio) = (each, one, each / one);
    Ok(Calls { call, rows_per_layer, each_layer_us, one_call_us, ratio, time_spread })
}

/// Fills every slot of state 0 in generation 0.
fn fill(engine: &mut Engine, options: &Options) -> Result<()> {
    let ids: Vec<i32> = (0..options.slots as i32).collect();
    let seq_len = options.rows() as i32;
    let load = Load { indexer: 0, state: 0, generation: 0, seq_len, ids: &ids, block_table: &[] };
    Ok(engine.load(&load, &mut engine.new_plan(1, 1)?).map(drop)?)
}

/// Copies the rows of state 0 to the states after it with a long `memcpy` for each layer, state and thread.
fn memcpy(engine: &Engine, workers: &WorkerPool, copies: usize) -> Result<()> {
    let (buffer, threads) = (engine.buffer(), workers.threads());
    let (layers, slots) = (buffer.config().layers, buffer.config().slots);
    let (_, stride) = buffer.strides(0)?;
    let run = |piece: usize, _: usize| {
        let (layer, thread) = (piece / threads, piece % threads);
        let first = share_start(slots, thread, threads);
        let bytes = (share_start(slots, thread + 1, threads) - first) * stride;
        let from = buffer.slot_ptr(0, layer, 0, first);
        for state in 1..=copies {
            let to = buffer.slot_ptr(state, layer, 0, first);
            // SAFETY: both ranges are slots of one layer and segment of the engine's own buffer, in different
            // states; no call on the engine is in progress, and each piece has slots of its own.
            unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
        }
    };
    let stage = Stage { pieces: layers * threads, run: &run };
    Ok(workers.launch(u64::MAX, None, Some(stage)).map(drop)?)
}

/// Measures a fork to `copies` states beside plain copies.
fn fork(engine: &mut Engine, options: &Options, copies: usize) -> Result<Fork> {
    let workers = WorkerPool::new(&WorkerConfig::new(engine.threads().unwrap_or(1)))?;
    let to: Vec<i32> = (1..=copies as i32).collect();
    let times = in_turns(options.repeats, 2, |_, contender, times| {
        thread::sleep(PAUSE);
        let start = Instant::now();
        if contender == 0 {
            engine.fork_to(0, 0, &to, &to)?;
        } else {
            memcpy(engine, &workers, copies)?;
        }
        times.push(us_since(start));
        Ok(())
    })?;
    let mut bits = vec![0; (options.slots as usize).div_ceil(64)];
    let rows = engine.held(0, 0, 0, 0..options.slots as i32, &mut bits)? * options.layers * copies;
    let gbs = |times: &Summary| (rows * options.row_bytes) as f64 / times.median / 1e3;
    Ok(Fork {
        copies,
        rows,
        fork_us: times[0].median,
        fork_gbs: gbs(&times[0]),
        memcpy_us: times[1].median,
        memcpy_gbs: gbs(&times[1]),
        percent_of_memcpy: 100.0 * times[1].median / times[0].median,
        time_spread: times[0].spread.max(times[1].spread),
    })
}

pub fn run(options: &Options) -> Result<()> {
    options.check()?;
    options.output.check([], [])?;
    let mut engine = options.engine()?;
    let bar = output::progress(2 + options.copies.len(), "layers");
    let watch = Watch::start();
    let mut steps = Steps::new(&mut engine, options)?;
    let (repeats, requests) = (options.repeats, options.requests);
    let copied = (repeats, requests * options.misses);
    let transfers = calls("transfer", copied, |one_call| steps.transfer(&mut engine, one_call))?;
    bar.inc(1);
    let appends =
        calls("append", (repeats, requests), |one_call| steps.append(&mut engine, one_call))?;
    bar.inc(1);
    fill(&mut engine, options)?;
    let mut forks = Vec::new();
    for &copies in &options.copies {
        forks.push(fork(&mut engine, options, copies)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let calls = vec![transfers, appends];
    let spreads =
        calls.iter().map(|row| row.time_spread).chain(forks.iter().map(|row| row.time_spread));
    let disturbance = watch.stop(repeats, spreads);
    let report = Report {
        machine: Host::detect(),
        layers: options.layers,
        requests,
        misses: options.misses,
        row_bytes: options.row_bytes,
        threads: engine.threads().unwrap_or(1),
        disturbance,
        calls,
        forks,
    };
    options.output.write(&report, || page(&report))
}

fn page(report: &Report) -> Page {
    let mut page = Page::default();
    page.text(format!(
        "{}, {}, {}, rows of {} bytes",
        report.machine.cpu,
        output::count(report.threads, "thread"),
        output::count(report.layers, "layer"),
        report.row_bytes
    ));
    let columns = ["call", "rows of a layer", "a call for each layer, us", "one call, us (x)"];
    let mut table = Table::new(columns).titled("Calls of a step for all layers");
    for row in &report.calls {
        table.add_row([
            row.call.into(),
            row.rows_per_layer.into(),
            number(row.each_layer_us),
            with_ratio(row.one_call_us, row.ratio),
        ]);
    }
    page.table(table);
    let columns =
        ["copies", "rows", "fork, us", "GB/s", "memcpy, us", "GB/s of memcpy", "fork, % of memcpy"];
    let mut table = Table::new(columns).titled("Forks of a full state beside a parallel memcpy");
    for row in &report.forks {
        table.add_row([
            row.copies.into(),
            row.rows.into(),
            number(row.fork_us),
            number(row.fork_gbs),
            number(row.memcpy_us),
            number(row.memcpy_gbs),
            Cell::number(row.percent_of_memcpy, 1),
        ]);
    }
    page.table(table);
    page.text(format!("times: {}", report.disturbance.line()));
    page
}
