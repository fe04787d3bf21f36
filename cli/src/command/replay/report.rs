//! The figures of a replay.

use std::time::Duration;

use crate::trace::Trace;
use avsg::device::params::Table as Kind;
use avsg::engine::Engine;
use avsg::plan::Plan;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::command::busy::{Disturbance, Watch};
use crate::command::geometry::Rule;
use crate::command::output::{self, Cell, Page, Table};

/// Percentiles of a latency in microseconds.
#[derive(Serialize, Default)]
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
    #[serde(flatten)]
    rule: Rule,
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
    rows_copied: u64,
    bytes_copied: u64,
    /// Rows of which every byte is right.
    pub verified_rows: u64,
    /// Rows with a wrong byte, and padding that has a slot.
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
    /// What else the machine did, set by [`Report::finish`].
    disturbance: Option<Disturbance>,
    /// Valid ids of the first step, and of the later steps.
    #[serde(skip)]
    selected: [u64; 2],
    /// Misses of the first step, and of the later steps.
    #[serde(skip)]
    missed: [u64; 2],
    /// Nanoseconds of each plan, or of each step if it is one launch.
    #[serde(skip)]
    plan: Histogram<u64>,
    /// Nanoseconds of each transfer.
    #[serde(skip)]
    transfer: Histogram<u64>,
}

impl Report {
    /// Creates the report of a replay without steps.
    pub fn new(trace: &Trace, engine: &Engine, rule: Rule, sparse: bool, memory: Memory) -> Self {
        let (p, config) = (engine.config().params, engine.config());
        let format = engine.pool().format();
        // A histogram has times from 1 ns to 100 s with three digits.
        let histogram =
            || Histogram::new_with_bounds(1, 100_000_000_000, 3).expect("the bounds are valid");
        let geometry = Geometry {
            table: if p.table == Kind::Wide { "wide" } else { "paper" },
            k: p.k,
            tokens: p.tokens,
            slots: p.slots,
            spread: p.spread,
            retries: p.retries,
            rule,
            page: p.page,
            row_bytes: format.bytes(),
            segments: format.as_slice().iter().map(|s| s.bytes).collect(),
            requests: config.states,
            cores: config.cores,
        };
        Self {
            geometry,
            memory,
            machine: engine.machine().map_or_else(|| "device".into(), |m| m.to_string()),
            copier: engine.copier().map_or_else(|| "device".into(), |c| c.to_string()),
            steps: trace.steps,
            hit_rate: 0.0,
            hit_rate_with_first: 0.0,
            misses: 0,
            rows_copied: 0,
            bytes_copied: 0,
            verified_rows: 0,
            wrong_rows: 0,
            plan_us: None,
            transfer_us: None,
            step_us: None,
            pages: if sparse { "sparse".to_owned() } else { engine.pool().pages().to_string() },
            pool_bytes: engine.pool().bytes(),
            disturbance: None,
            selected: [0; 2],
            missed: [0; 2],
            plan: histogram(),
            transfer: histogram(),
        }
    }

    /// Adds the times of one step: of the plan and of the transfer, or of both as `plan`.
    pub fn record_times(&mut self, plan: Duration, transfer: Option<Duration>) {
        // A step of more than 100 s is counted as 100 s; `record` would refuse it.
        self.plan.saturating_record(plan.as_nanos() as u64);
        if let Some(transfer) = transfer {
            self.transfer.saturating_record(transfer.as_nanos() as u64);
        }
    }

    /// Adds the misses of one step.
    pub fn count(&mut self, step: usize, plan: &Plan) {
        let later = usize::from(step > 0);
        self.selected[later] += plan.valid().iter().map(|&v| v as u64).sum::<u64>();
        let missed = plan.total_misses() as u64;
        self.missed[later] += missed;
        self.misses += missed;
        // The engine copies one row per miss and nothing else.
        self.rows_copied += missed;
        self.bytes_copied += missed * self.geometry.row_bytes as u64;
    }

    /// Computes the rates and percentiles; `watch` was started before the first step.
    pub fn finish(&mut self, watch: &Watch) {
        let spread =
            self.plan.value_at_quantile(0.9) as f64 / self.plan.value_at_quantile(0.5) as f64;
        self.disturbance = Some(watch.stop(self.steps, spread));
        let rate = |missed: u64, selected: u64| 100.0 - 100.0 * missed as f64 / selected as f64;
        let ([m0, m1], [s0, s1]) = (self.missed, self.selected);
        self.hit_rate_with_first = rate(m0 + m1, s0 + s1);
        self.hit_rate = rate(m1, s1);
        let us = |h: &Histogram<u64>| Percentiles {
            p50: h.value_at_quantile(0.5) as f64 / 1e3,
            p99: h.value_at_quantile(0.99) as f64 / 1e3,
        };
        if self.transfer.is_empty() {
            self.step_us = Some(us(&self.plan));
        } else {
            (self.plan_us, self.transfer_us) = (Some(us(&self.plan)), Some(us(&self.transfer)));
        }
    }

    /// Prints a warning to standard error if the times cannot be trusted.
    pub fn warn_if_disturbed(&self) {
        self.disturbance.iter().for_each(Disturbance::warn);
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
        let selected = self.selected[0] + self.selected[1];
        let times = self
            .latencies()
            .into_iter()
            .map(|(name, us)| format!("{name} {:.1} us (p99 {:.1} us)", us.p50, us.p99));
        [
            format!(
                "memory     slots {}, tables and working columns {}, host pool {}; available {}",
                output::bytes(m.slots_bytes),
                output::bytes(m.tables_bytes),
                output::bytes(m.host_pool_bytes),
                output::bytes(m.available_bytes)
            ),
            format!(
                "trace      {trace}: {}, N_q {}, K {}",
                output::count(self.steps, "step"),
                g.tokens,
                g.k
            ),
            format!(
                "table      {} S={} spread {} R={} {}, {}, {}, {}, copier {}",
                g.table,
                g.slots,
                g.spread,
                g.retries,
                g.rule.lifetime,
                output::count(g.requests, "request"),
                output::count(g.cores, "core"),
                self.machine,
                self.copier
            ),
            format!(
                "hit rate   {} after the first step, {} with it",
                rate(self.hit_rate),
                rate(self.hit_rate_with_first)
            ),
            format!(
                "copied     {} rows, {} (all selected rows have {})",
                self.rows_copied,
                output::bytes(self.bytes_copied as usize),
                output::bytes(selected as usize * g.row_bytes)
            ),
            format!(
                "latency    {} (medians of {})",
                times.collect::<Vec<_>>().join(", "),
                output::count(self.steps, "step")
            ),
            format!(
                "host pool  {}, {}, {} in use",
                output::bytes(self.pool_bytes),
                self.pages,
                output::count(m.host_rows_used, "row")
            ),
            format!("verified   {} rows right, {} wrong", self.verified_rows, self.wrong_rows),
        ]
        .join("\n")
    }

    fn table(&self) -> Table {
        let mut table = output::table(["figure", "value", "unit"]);
        let mut add = |figure: String, value: Cell, unit: &str| {
            table.add_row([figure.into(), value, unit.into()]);
        };
        add("steps".into(), self.steps.into(), "steps");
        add("hit rate after the first step".into(), Cell::number(self.hit_rate, 2), "%");
        add("hit rate with the first step".into(), Cell::number(self.hit_rate_with_first, 2), "%");
        add("copied".into(), self.rows_copied.into(), "rows");
        add("copied".into(), self.bytes_copied.into(), "bytes");
        let selected = (self.selected[0] + self.selected[1]) * self.geometry.row_bytes as u64;
        add("selected".into(), selected.into(), "bytes");
        for (name, us) in self.latencies() {
            add(format!("{name}, median"), Cell::number(us.p50, 1), "us");
            add(format!("{name}, 99th percentile"), Cell::number(us.p99, 1), "us");
        }
        add("right".into(), self.verified_rows.into(), "rows");
        add("wrong".into(), self.wrong_rows.into(), "rows");
        table
    }

    /// Returns the names and times of the launches of a step.
    fn latencies(&self) -> Vec<(&'static str, &Percentiles)> {
        let parts =
            [("plan", &self.plan_us), ("transfer", &self.transfer_us), ("step", &self.step_us)];
        parts.into_iter().filter_map(|(name, us)| Some((name, us.as_ref()?))).collect()
    }
}
