//! The figures of a replay.

use std::iter;

use crate::baseline::{HitCount, count_repeats};
use crate::trace::Trace;
use anyhow::Result;
use avsg::engine::Engine;
use avsg::plan::Plan;
use serde_json::{Map, Value, json, to_value};

use crate::command::busy::Watch;
use crate::command::engine_options::described;
use crate::command::output::{Page, beside_gathers, bytes, count};
use crate::stats::{Summary, summary};

/// Counts and times of the steps so far.
pub struct Tally {
    hits: HitCount,
    /// Rows of which every byte is right.
    pub verified_rows: u64,
    /// Rows with a wrong byte, and padding that has a slot.
    pub wrong_rows: u64,
    /// Microseconds of each plan and of each transfer, or of each step if it is one launch.
    pub times: Vec<(&'static str, Vec<f64>)>,
    watch: Watch,
}

impl Tally {
    /// Begins to watch the machine. A step has these parts.
    pub fn start(parts: &[&'static str]) -> Self {
        let times = parts.iter().map(|part| (*part, Vec::new())).collect();
        let (hits, watch) = (HitCount::default(), Watch::start());
        Self { hits, verified_rows: 0, wrong_rows: 0, times, watch }
    }

    pub fn count(&mut self, step: usize, plan: &Plan) {
        let selected = plan.valid().iter().map(|&v| v as u64).sum();
        self.hits.add(step, selected, selected - plan.total_misses() as u64);
    }
}

/// Returns the figures after the last step as JSON, and adds to the page whether every row is right and how many are
/// copied, the times, and what was assumed. `name` is that of the trace. `slots` and `tables`, which have the working
/// columns, are bytes, and `rows_used` are the rows of the host pool that the trace selects or appends.
pub fn report(
    page: &mut Page,
    (name, trace): (&str, &Trace),
    engine: &Engine,
    sparse: bool,
    [slots, tables, rows_used]: [usize; 3],
    mut tally: Tally,
) -> Result<Value> {
    let (pool, config) = (engine.pool(), engine.config());
    let (requests, cores) = (config.states, config.cores);
    let of_all = |one| iter::repeat_n(one, requests).sum::<HitCount>();
    let (hits, once) = (tally.hits, of_all(count_repeats(trace)));
    let row_bytes = pool.format().bytes();
    // The engine copies one row per miss and nothing else.
    let missed = hits.selected - hits.hits;
    let rows = [missed, hits.selected, once.selected - once.hits];
    let [copied, selected, without_repeats] = rows.map(|rows| rows * row_bytes as u64);
    let rate = hits.percent();
    let shown = rate.map(|rate| format!("{rate:.2} % of hits after the first step, "));
    let shown = shown.unwrap_or_default();
    let gathers = [selected as f64, without_repeats as f64];
    let fewer = beside_gathers("fewer bytes than", gathers, copied as f64);
    let Tally { verified_rows, wrong_rows, .. } = tally;
    page.text(format!("{verified_rows} rows right, {wrong_rows} wrong: {shown}{fewer}"));
    let size = |n: u64| bytes(n as usize);
    let [own, every, once] = [copied, selected, without_repeats].map(size);
    page.text(format!(
        "copied    {missed} rows, {own} in place of {every} for every selected row, {once} without repeats"
    ));
    let (mut latency, mut times, mut spreads) = (Map::new(), Vec::new(), Vec::new());
    for (part, us) in &mut tally.times {
        let us = summary(us);
        let Summary { p10, p50, p90, p99, .. } = us;
        times.push(format!("{part} {p50:.1} us ({p10:.1} to {p90:.1}, p99 {p99:.1})"));
        latency.insert(format!("{part}_us"), to_value(us)?);
        spreads.push(us.spread());
    }
    let (times, steps) = (times.join(", "), count(trace.steps, "step"));
    page.text(format!("latency   {times}: medians of {steps}, first to ninth decile"));
    let mut setting = described(&config.params);
    let machine = engine.cpu().map_or("device", |cpu| cpu.machine);
    let copier = engine.cpu().map_or_else(|| "device".into(), |cpu| cpu.copier.to_string());
    page.text(format!(
        "assumed   {name}: one layer, {}; {}; {}, {machine}, copier {copier}",
        count(requests, "request"),
        config.params,
        count(cores, "core")
    ));
    let file = pool.store().map(|store| (store.info(), store.stats()));
    let pages = match &file {
        Some(_) => "queue of writes to a file".to_owned(),
        None if sparse => "sparse".to_owned(),
        None => pool.pages().to_string(),
    };
    page.text(format!(
        "memory    slots {}, tables and working columns {}, host pool {} ({pages}, {} in use)",
        bytes(slots),
        bytes(tables),
        bytes(pool.bytes()),
        count(rows_used, "row")
    ));
    // The rows were written before the first step.
    let file = file.map(|(info, stats)| {
        let per_row = stats.written_bytes as f64 / stats.rows_appended.max(1) as f64;
        page.text(format!(
            "file      {info}; {} reads of {}; {} written, {per_row:.0} bytes per row",
            stats.reads,
            size(stats.read_bytes),
            size(stats.written_bytes)
        ));
        json!({
            "what": info.to_string(),
            "reads": stats.reads,
            "read_bytes": stats.read_bytes,
            "written_bytes": stats.written_bytes,
            "written_bytes_per_row": per_row,
        })
    });
    setting["row_bytes"] = row_bytes.into();
    setting["segments"] = pool.format().as_slice().iter().map(|s| s.bytes).collect();
    setting["requests"] = requests.into();
    setting["cores"] = cores.into();
    let mut figures = json!({
        "geometry": setting,
        "memory": {
            "slots_bytes": slots,
            "tables_bytes": tables,
            "host_pool_bytes": pool.bytes(),
            "host_rows_used": rows_used,
        },
        "machine": machine,
        "copier": copier,
        "steps": trace.steps,
        "hit_rate": rate,
        // NaN, which is null in JSON, if there are no ids.
        "hit_rate_with_first": 100.0 - 100.0 * missed as f64 / hits.selected as f64,
        "misses": missed,
        "bytes_copied": copied,
        "verified_rows": verified_rows,
        "wrong_rows": wrong_rows,
        "pages": pages,
        "file": file,
        "disturbance": tally.watch.stop(trace.steps, spreads),
        "bytes_selected": selected,
        "bytes_without_repeats": without_repeats,
    });
    if let Some(figures) = figures.as_object_mut() {
        figures.append(&mut latency);
    }
    Ok(figures)
}
