//! The figures of a replay.

use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;

use crate::baseline::{HitCount, count_ceiling, count_repeats};
use crate::trace::Trace;
use anyhow::Result;
use avsg::disk::DiskStats;
use avsg::engine::Engine;
use avsg::plan::Plan;
use avsg::pool::HostPool;
use serde::Serialize;

use crate::command::busy::{Disturbance, Watch};
use crate::command::engine_options::Geometry;
use crate::command::output::{self, Page, beside_gathers};
use crate::stats::{Summary, summary};

/// The table, the rows and the batch.
#[derive(Serialize)]
struct Setting {
    #[serde(flatten)]
    table: Geometry,
    row_bytes: usize,
    segments: Vec<usize>,
    requests: usize,
    cores: usize,
}

/// What the replay allocates.
#[derive(Serialize)]
pub struct MemoryUse {
    pub slots_bytes: usize,
    /// Tables and working columns.
    pub tables_bytes: usize,
    pub host_pool_bytes: usize,
    /// Rows of the host pool that the trace selects or appends.
    pub host_rows_used: usize,
}

/// The file with the host rows, and what was read and written. The rows were written before the first step.
#[derive(Serialize)]
struct FileUse {
    what: String,
    reads: u64,
    read_bytes: u64,
    written_bytes: u64,
    written_bytes_per_row: f64,
}

impl FileUse {
    fn of(pool: &HostPool) -> Option<Self> {
        let (info, stats) = (pool.disk_info()?, pool.disk_stats()?);
        let DiskStats { reads, read_bytes, written_bytes, .. } = stats;
        let written_bytes_per_row = stats.written_bytes_per_token(1);
        Some(Self {
            what: info.to_string(),
            reads,
            read_bytes,
            written_bytes,
            written_bytes_per_row,
        })
    }

    fn line(&self) -> String {
        let [read, written] =
            [self.read_bytes, self.written_bytes].map(|n| output::bytes(n as usize));
        let Self { what, reads, written_bytes_per_row: per_row, .. } = self;
        format!("{what}; {reads} reads of {read}; {written} written, {per_row:.0} bytes per row")
    }
}

/// Counts and times of the steps so far.
pub struct Tally {
    hits: HitCount,
    /// Rows of which every byte is right.
    pub verified_rows: u64,
    /// Rows with a wrong byte, and padding that has a slot.
    pub wrong_rows: u64,
    /// Microseconds of each plan, or of each step if it is one launch.
    plan: Vec<f64>,
    /// Microseconds of each transfer.
    transfer: Vec<f64>,
    watch: Watch,
}

impl Tally {
    /// Begins to watch the machine.
    pub fn start() -> Self {
        let (hits, watch) = (HitCount::default(), Watch::start());
        let (plan, transfer) = (Vec::new(), Vec::new());
        Self { hits, verified_rows: 0, wrong_rows: 0, plan, transfer, watch }
    }

    /// Adds the times of one step: of the plan and of the transfer, or of both as `plan`.
    pub fn record_times(&mut self, plan: Duration, transfer: Option<Duration>) {
        self.plan.push(plan.as_secs_f64() * 1e6);
        self.transfer.extend(transfer.map(|time| time.as_secs_f64() * 1e6));
    }

    pub fn count(&mut self, step: usize, plan: &Plan) {
        let selected = plan.valid().iter().map(|&v| v as u64).sum();
        self.hits.add(step, selected, selected - plan.total_misses() as u64);
    }
}

/// The figures of a replay, which are written as JSON.
#[derive(Serialize)]
pub struct Report {
    geometry: Setting,
    memory: MemoryUse,
    machine: String,
    copier: String,
    steps: usize,
    /// Hits in percent of valid ids after the first step, which starts with an empty buffer; NaN, which
    /// is null in JSON, if no later step selects an id.
    hit_rate: Option<f64>,
    /// Hits in percent of valid ids over all steps; NaN if there are none.
    hit_rate_with_first: f64,
    misses: u64,
    /// The engine copies one row per miss and nothing else.
    rows_copied: u64,
    bytes_copied: u64,
    verified_rows: u64,
    pub wrong_rows: u64,
    /// Microseconds of a plan and of a transfer, or of a step if it is one launch.
    #[serde(flatten)]
    latency: BTreeMap<&'static str, Summary>,
    pages: String,
    pool_bytes: usize,
    /// The file with the host rows; null if they are in memory.
    file: Option<FileUse>,
    disturbance: Disturbance,
    /// Bytes of a gather of every row that each token selects.
    bytes_selected: u64,
    /// Bytes of a gather that copies each row of a step once.
    bytes_without_repeats: u64,
}

impl Report {
    /// Computes the rates and percentiles after the last step.
    pub fn new(
        trace: &Trace,
        engine: &Engine,
        sparse: bool,
        memory: MemoryUse,
        mut tally: Tally,
    ) -> Result<Self> {
        let (p, config) = (engine.config().params, engine.config());
        let of_all = |one| iter::repeat_n(one, config.states).sum::<HitCount>();
        let (hits, once) = (tally.hits, of_all(count_repeats(trace)));
        hits.check(&p.to_string(), &of_all(count_ceiling(trace)?), "the ceiling")?;
        let format = engine.pool().format();
        let (plan, transfer) = (summary(&mut tally.plan), summary(&mut tally.transfer));
        let latency = match tally.transfer.is_empty() {
            true => BTreeMap::from([("step_us", plan)]),
            false => BTreeMap::from([("plan_us", plan), ("transfer_us", transfer)]),
        };
        let missed = hits.selected - hits.hits;
        let row_bytes = format.bytes();
        let file = FileUse::of(engine.pool());
        Ok(Self {
            geometry: Setting {
                table: (&p).into(),
                row_bytes,
                segments: format.as_slice().iter().map(|s| s.bytes).collect(),
                requests: config.states,
                cores: config.cores,
            },
            memory,
            machine: engine.cpu().map_or_else(|| "device".into(), |cpu| cpu.machine.to_string()),
            copier: engine.cpu().map_or_else(|| "device".into(), |cpu| cpu.copier.to_string()),
            steps: trace.steps,
            hit_rate: hits.percent(),
            hit_rate_with_first: 100.0 - 100.0 * missed as f64 / hits.selected as f64,
            misses: missed,
            rows_copied: missed,
            bytes_copied: missed * row_bytes as u64,
            verified_rows: tally.verified_rows,
            wrong_rows: tally.wrong_rows,
            latency,
            pages: match &file {
                Some(_) => "queue of writes to a file".to_owned(),
                None if sparse => "sparse".to_owned(),
                None => engine.pool().pages().to_string(),
            },
            pool_bytes: engine.pool().bytes(),
            file,
            disturbance: tally.watch.stop(trace.steps, [plan.spread()]),
            bytes_selected: hits.selected * row_bytes as u64,
            bytes_without_repeats: (once.selected - once.hits) * row_bytes as u64,
        })
    }

    /// Returns the page: whether every row is right and how many are copied, the times, and what was assumed.
    pub fn page(&self, trace: &str, warning: Option<String>) -> Page {
        let mut page = Page::default();
        warning.iter().for_each(|warning| page.text(warning));
        let (g, m) = (&self.geometry, &self.memory);
        let Self { machine, copier, pages, rows_copied, verified_rows, wrong_rows, .. } = self;
        let rate = match self.hit_rate {
            Some(rate) => format!("{rate:.2} % of hits after the first step, "),
            None => String::new(),
        };
        let gathers = [self.bytes_selected, self.bytes_without_repeats];
        let fewer = match self.bytes_copied {
            0 => "no byte copied".to_owned(),
            copied => {
                beside_gathers("fewer bytes than", gathers.map(|all| all as f64 / copied as f64))
            }
        };
        page.text(format!("{verified_rows} rows right, {wrong_rows} wrong: {rate}{fewer}"));
        let copied = output::bytes(self.bytes_copied as usize);
        let [selected, once] = gathers.map(|n| output::bytes(n as usize));
        page.text(format!(
            "copied    {rows_copied} rows, {copied} in place of {selected} for every selected row, {once} without repeats"
        ));
        let times = self.latency.iter().map(|(name, us)| {
            let name = name.trim_end_matches("_us");
            format!("{name} {:.1} us ({:.1} to {:.1}, p99 {:.1})", us.p50, us.p10, us.p90, us.p99)
        });
        let [steps, requests, cores, used] = [
            (self.steps, "step"),
            (g.requests, "request"),
            (g.cores, "core"),
            (m.host_rows_used, "row"),
        ]
        .map(|(n, noun)| output::count(n, noun));
        let times = times.collect::<Vec<_>>().join(", ");
        page.text(format!("latency   {times}: medians of {steps}, first to ninth decile"));
        page.text(format!(
            "assumed   {trace}: one layer, {requests}; {}; {cores}, {machine}, copier {copier}",
            g.table
        ));
        let [slots, tables, pool] =
            [m.slots_bytes, m.tables_bytes, self.pool_bytes].map(output::bytes);
        page.text(format!(
            "memory    slots {slots}, tables and working columns {tables}, host pool {pool} ({pages}, {used} in use)"
        ));
        self.file.iter().for_each(|file| page.text(format!("file      {}", file.line())));
        page
    }
}
