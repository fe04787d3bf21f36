//! The figures of a replay.

use std::time::Duration;

use crate::trace::Trace;
use avsg::device::params::Table as Kind;
use avsg::disk::DiskStats;
use avsg::engine::Engine;
use avsg::plan::Plan;
use avsg::pool::HostPool;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::command::busy::{Disturbance, Watch};
use crate::command::output::{self, Cell, Page, Table};

/// Percentiles of a latency in microseconds.
#[derive(Serialize)]
struct Percentiles {
    p50: f64,
    p99: f64,
}

#[derive(Serialize)]
struct Geometry {
    table: &'static str,
    k: u32,
    tokens: u32,
    slots: u32,
    spread: u32,
    retries: u32,
    lifetime: String,
    page: u32,
    row_bytes: usize,
    segments: Vec<usize>,
    requests: usize,
    cores: usize,
}

/// What the replay allocates, and what the machine could give before.
#[derive(Serialize)]
pub struct Memory {
    pub slots_bytes: usize,
    /// Tables and working columns.
    pub tables_bytes: usize,
    pub host_pool_bytes: usize,
    /// Rows of the host pool that the trace selects or appends.
    pub host_rows_used: usize,
    pub available_bytes: usize,
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
    /// Valid ids of the first step, and of the later steps.
    selected: [u64; 2],
    /// Misses of the first step, and of the later steps.
    missed: [u64; 2],
    /// Rows of which every byte is right.
    pub verified_rows: u64,
    /// Rows with a wrong byte, and padding that has a slot.
    pub wrong_rows: u64,
    /// Nanoseconds of each plan, or of each step if it is one launch.
    plan: Histogram<u64>,
    /// Nanoseconds of each transfer.
    transfer: Histogram<u64>,
    watch: Watch,
}

impl Tally {
    /// Begins to watch the machine.
    pub fn start() -> Self {
        // A histogram has times from 1 ns to 100 s with three digits.
        let histogram =
            || Histogram::new_with_bounds(1, 100_000_000_000, 3).expect("the bounds are valid");
        let (plan, transfer, watch) = (histogram(), histogram(), Watch::start());
        let (selected, missed, verified_rows, wrong_rows) = ([0; 2], [0; 2], 0, 0);
        Self { selected, missed, verified_rows, wrong_rows, plan, transfer, watch }
    }

    /// Adds the times of one step: of the plan and of the transfer, or of both as `plan`.
    pub fn record_times(&mut self, plan: Duration, transfer: Option<Duration>) {
        // A step of more than 100 s is counted as 100 s; `record` would refuse it.
        self.plan.saturating_record(plan.as_nanos() as u64);
        if let Some(transfer) = transfer {
            self.transfer.saturating_record(transfer.as_nanos() as u64);
        }
    }

    pub fn count(&mut self, step: usize, plan: &Plan) {
        let later = usize::from(step > 0);
        self.selected[later] += plan.valid().iter().map(|&v| v as u64).sum::<u64>();
        self.missed[later] += plan.total_misses() as u64;
    }
}

/// The figures of a replay, which are written as JSON.
#[derive(Serialize)]
pub struct Report {
    geometry: Geometry,
    memory: Memory,
    machine: String,
    copier: String,
    steps: usize,
    /// Hits in percent of valid ids after the first step, which starts with an empty buffer; NaN, which
    /// is null in JSON, if no later step selects an id.
    hit_rate: f64,
    /// Hits in percent of valid ids over all steps; NaN if there are none.
    hit_rate_with_first: f64,
    misses: u64,
    /// The engine copies one row per miss and nothing else.
    rows_copied: u64,
    bytes_copied: u64,
    verified_rows: u64,
    pub wrong_rows: u64,
    /// Time of the plan, if a step is two launches.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_us: Option<Percentiles>,
    /// Time of the transfer, if a step is two launches.
    #[serde(skip_serializing_if = "Option::is_none")]
    transfer_us: Option<Percentiles>,
    /// Time of a step, if it is one launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    step_us: Option<Percentiles>,
    pages: String,
    pool_bytes: usize,
    /// The file with the host rows; null if they are in memory.
    file: Option<FileUse>,
    disturbance: Disturbance,
    /// Bytes of the rows of all valid ids.
    #[serde(skip)]
    bytes_selected: u64,
}

impl Report {
    /// Computes the rates and percentiles after the last step.
    pub fn new(trace: &Trace, engine: &Engine, sparse: bool, memory: Memory, tally: Tally) -> Self {
        let (p, config) = (engine.config().params, engine.config());
        let format = engine.pool().format();
        let at = |h: &Histogram<u64>, quantile| h.value_at_quantile(quantile) as f64;
        let spread = at(&tally.plan, 0.9) / at(&tally.plan, 0.5);
        let us = |h| Percentiles { p50: at(h, 0.5) / 1e3, p99: at(h, 0.99) / 1e3 };
        let two_launches = !tally.transfer.is_empty();
        let rate = |missed: u64, selected: u64| 100.0 - 100.0 * missed as f64 / selected as f64;
        let ([_, later_missed], [_, later_selected]) = (tally.missed, tally.selected);
        let (missed, selected) = (tally.missed.iter().sum(), tally.selected.iter().sum());
        let row_bytes = format.bytes();
        let file = FileUse::of(engine.pool());
        Self {
            geometry: Geometry {
                table: if p.table == Kind::Wide { "wide" } else { "paper" },
                k: p.k,
                tokens: p.tokens,
                slots: p.slots,
                spread: p.spread,
                retries: p.retries,
                lifetime: p.lifetime.to_string(),
                page: p.page,
                row_bytes,
                segments: format.as_slice().iter().map(|s| s.bytes).collect(),
                requests: config.states,
                cores: config.cores,
            },
            memory,
            machine: engine.machine().map_or_else(|| "device".into(), |m| m.to_string()),
            copier: engine.copier().map_or_else(|| "device".into(), |c| c.to_string()),
            steps: trace.steps,
            hit_rate: rate(later_missed, later_selected),
            hit_rate_with_first: rate(missed, selected),
            misses: missed,
            rows_copied: missed,
            bytes_copied: missed * row_bytes as u64,
            verified_rows: tally.verified_rows,
            wrong_rows: tally.wrong_rows,
            plan_us: two_launches.then(|| us(&tally.plan)),
            transfer_us: two_launches.then(|| us(&tally.transfer)),
            step_us: (!two_launches).then(|| us(&tally.plan)),
            pages: match &file {
                Some(_) => "queue of writes to a file".to_owned(),
                None if sparse => "sparse".to_owned(),
                None => engine.pool().pages().to_string(),
            },
            pool_bytes: engine.pool().bytes(),
            file,
            disturbance: tally.watch.stop(trace.steps, [spread]),
            bytes_selected: selected * row_bytes as u64,
        }
    }

    /// Returns the report as text for a terminal and as a table for the other forms.
    pub fn page(&self, trace: &str) -> Page {
        let mut page = Page::default();
        page.facts(self.text(trace), self.table());
        page
    }

    fn text(&self, trace: &str) -> String {
        let (g, m) = (&self.geometry, &self.memory);
        let rate = |rate: f64| {
            if rate.is_finite() { format!("{rate:.2} %") } else { "-".to_owned() }
        };
        let (after, with) = (rate(self.hit_rate), rate(self.hit_rate_with_first));
        let [slots, tables, pool, available] =
            [m.slots_bytes, m.tables_bytes, m.host_pool_bytes, m.available_bytes]
                .map(output::bytes);
        let [copied, selected, reserved] =
            [self.bytes_copied as usize, self.bytes_selected as usize, self.pool_bytes]
                .map(output::bytes);
        let [steps, requests, cores, used] = [
            (self.steps, "step"),
            (g.requests, "request"),
            (g.cores, "core"),
            (m.host_rows_used, "row"),
        ]
        .map(|(n, noun)| output::count(n, noun));
        let &Geometry { table, k, tokens, slots: s, spread, retries, ref lifetime, .. } = g;
        let Self { machine, copier, pages, .. } = self;
        let Self { rows_copied, verified_rows, wrong_rows, .. } = self;
        let times = self.latencies().into_iter();
        let times =
            times.map(|(name, us)| format!("{name} {:.1} us (p99 {:.1} us)", us.p50, us.p99));
        let times = times.collect::<Vec<_>>().join(", ");
        let file = self.file.iter().map(|file| format!("file       {}", file.line()));
        let lines = [
            format!(
                "memory     slots {slots}, tables and working columns {tables}, host pool {pool}; available {available}"
            ),
            format!("trace      {trace}: {steps}, N_q {tokens}, K {k}"),
            format!(
                "table      {table} S={s} spread {spread} R={retries} {lifetime}, {requests}, {cores}, {machine}, \
                 copier {copier}"
            ),
            format!("hit rate   {after} after the first step, {with} with it"),
            format!("copied     {rows_copied} rows, {copied} (all selected rows have {selected})"),
            format!("latency    {times} (medians of {steps})"),
            format!("host pool  {reserved}, {pages}, {used} in use"),
            format!("verified   {verified_rows} rows right, {wrong_rows} wrong"),
        ];
        lines.into_iter().chain(file).collect::<Vec<_>>().join("\n")
    }

    fn table(&self) -> Table {
        let mut table = output::table(["figure", "value", "unit"]);
        let mut add = |figure: &str, value: Cell, unit: &str| {
            table.add_row([figure.into(), value, unit.into()]);
        };
        add("steps", self.steps.into(), "steps");
        add("hit rate after the first step", Cell::number(self.hit_rate, 2), "%");
        add("hit rate with the first step", Cell::number(self.hit_rate_with_first, 2), "%");
        add("copied", self.rows_copied.into(), "rows");
        add("copied", self.bytes_copied.into(), "bytes");
        add("selected", self.bytes_selected.into(), "bytes");
        for (name, us) in self.latencies() {
            add(&format!("{name}, median"), Cell::number(us.p50, 1), "us");
            add(&format!("{name}, 99th percentile"), Cell::number(us.p99, 1), "us");
        }
        add("right", self.verified_rows.into(), "rows");
        add("wrong", self.wrong_rows.into(), "rows");
        table
    }

    /// Returns the names and times of the launches of a step.
    fn latencies(&self) -> Vec<(&'static str, &Percentiles)> {
        let parts =
            [("plan", &self.plan_us), ("transfer", &self.transfer_us), ("step", &self.step_us)];
        parts.into_iter().filter_map(|(name, us)| Some((name, us.as_ref()?))).collect()
    }
}
