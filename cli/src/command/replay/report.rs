//! What a replay found.

use std::time::Duration;

use crate::trace::Trace;
use avsg::device::params::{Lifetime, Table};
use avsg::engine::Engine;
use avsg::plan::Plan;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::command::output;

/// A latency in microseconds.
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
    lifetime: String,
    page: u32,
    row_bytes: usize,
    segments: Vec<usize>,
    requests: usize,
    cores: usize,
}

/// The figures of a replay; serialises to the command's JSON.
#[derive(Serialize)]
pub struct Report {
    geometry: Geometry,
    machine: String,
    copier: String,
    steps: usize,
    /// Hits in percent of valid ids, the first step not counted (it is cold).
    hit_rate: f64,
    /// The same with the first step.
    hit_rate_with_first: f64,
    misses: u64,
    rows_copied: u64,
    bytes_copied: u64,
    /// Rows whose every byte was right.
    pub verified_rows: u64,
    /// Rows with a wrong byte, and padding that got a slot.
    pub wrong_rows: u64,
    /// Of plan and transfer, or of both as one launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_us: Option<Percentiles>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transfer_us: Option<Percentiles>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step_us: Option<Percentiles>,
    pages: String,
    pool_bytes: usize,
    #[serde(skip)]
    selected: [u64; 2],
    #[serde(skip)]
    missed: [u64; 2],
    #[serde(skip)]
    plan: Histogram<u64>,
    #[serde(skip)]
    transfer: Histogram<u64>,
}

impl Report {
    pub fn new(trace: &Trace, engine: &Engine) -> Self {
        let (p, config) = (engine.config().params, engine.config());
        let format = engine.pool().format();
        // 100 ns to 100 s at three digits: fixed ranges, so creation cannot fail.
        let histogram =
            || Histogram::new_with_bounds(1, 100_000_000_000, 3).expect("fixed, valid bounds");
        let geometry = Geometry {
            table: if p.table == Table::Wide { "wide" } else { "paper" },
            k: p.k,
            tokens: p.tokens,
            slots: p.slots,
            spread: p.spread,
            retries: p.retries,
            lifetime: match p.lifetime {
                Lifetime::Constant(l) => format!("constant:{l}"),
                Lifetime::Frequency(f) => format!("frequency (new slots {})", f.new),
            },
            page: p.page,
            row_bytes: format.bytes(),
            segments: format.as_slice().iter().map(|s| s.bytes).collect(),
            requests: config.states,
            cores: config.cores,
        };
        Self {
            geometry,
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
            pages: engine.pool().pages().to_string(),
            pool_bytes: engine.pool().bytes(),
            selected: [0; 2],
            missed: [0; 2],
            plan: histogram(),
            transfer: histogram(),
        }
    }

    /// One step's latencies: of the plan and the transfer, or of both in one.
    pub fn times(&mut self, plan: Duration, transfer: Option<Duration>) {
        // Saturating: a step of over 100 s would not be counted otherwise.
        self.plan.saturating_record(plan.as_nanos() as u64);
        if let Some(transfer) = transfer {
            self.transfer.saturating_record(transfer.as_nanos() as u64);
        }
    }

    /// One step's misses.
    pub fn count(&mut self, step: usize, plan: &Plan) {
        let later = usize::from(step > 0);
        self.selected[later] += plan.valid().iter().map(|&v| v as u64).sum::<u64>();
        let missed = plan.total_misses() as u64;
        self.missed[later] += missed;
        self.misses += missed;
        // The engine copies one row per miss and nothing else; the guard test proves it.
        self.rows_copied += missed;
        self.bytes_copied += missed * self.geometry.row_bytes as u64;
    }

    /// Rates and percentiles.
    pub fn close(&mut self) {
        let rate = |missed: u64, selected: u64| {
            if selected == 0 { 0.0 } else { 100.0 - 100.0 * missed as f64 / selected as f64 }
        };
        let ([m0, m1], [s0, s1]) = (self.missed, self.selected);
        self.hit_rate_with_first = rate(m0 + m1, s0 + s1);
        self.hit_rate = if s1 == 0 { self.hit_rate_with_first } else { rate(m1, s1) };
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

    /// For a reader.
    pub fn print(&self, trace: &str) {
        let g = &self.geometry;
        println!("trace      {trace}: {} steps, N_q {}, K {}", self.steps, g.tokens, g.k);
        println!(
            "table      {} S={} spread {} R={} {}, {} request(s), {} core(s), {}, copy {}",
            g.table,
            g.slots,
            g.spread,
            g.retries,
            g.lifetime,
            g.requests,
            g.cores,
            self.machine,
            self.copier
        );
        println!(
            "hit rate   {:.2} % after the first step ({:.2} % with it)",
            self.hit_rate, self.hit_rate_with_first
        );
        println!(
            "copied     {} rows, {} (all selected rows: {})",
            self.rows_copied,
            output::bytes(self.bytes_copied as usize),
            output::bytes(((self.selected[0] + self.selected[1]) as usize) * g.row_bytes)
        );
        let parts =
            [("plan", &self.plan_us), ("transfer", &self.transfer_us), ("both", &self.step_us)];
        let times = parts.iter().filter_map(|(name, us)| {
            us.as_ref().map(|us| format!("{name} {:.1} us (p99 {:.1})", us.p50, us.p99))
        });
        println!("latency    {} per step", times.collect::<Vec<_>>().join(", "));
        println!("host pool  {}, {}", output::bytes(self.pool_bytes), self.pages);
        println!("verified   {} rows, {} wrong", self.verified_rows, self.wrong_rows);
    }
}
