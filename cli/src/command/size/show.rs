//! The figures of `avsg size` as a page and as a chart.

use std::path::Path;

use anyhow::Result;

use super::least::Least;
use super::point::Point;
use super::report::Report;
use crate::command::output::{Cell, Page, Table, bytes, count};
use crate::draw::{self, Series};

/// Points of the LRU curve in a chart, at most.
const CHART_POINTS: usize = 48;

/// Returns the page: with every multiple of 64 if `curve`, else with the measured S.
pub fn page(report: &Report, curve: bool) -> Page {
    let mut page = Page::default();
    let Report { steps, tokens, k, distinct_ids, deployment: d, .. } = report;
    page.text(format!(
        "trace       {}: {}, N_q {tokens}, K {k}, {}",
        report.trace,
        count(*steps, "step"),
        count(*distinct_ids, "different id")
    ));
    page.text(format!(
        "deployment  {}, {}, {}, rows of {} bytes, {} of context",
        count(d.layers, "layer"),
        count(d.indexers, "indexer"),
        count(d.requests, "request"),
        d.row_bytes,
        count(d.context, "token")
    ));
    page.text(format!("host pool   {}", bytes(d.host_bytes)));
    if let Some(selected) = report.selected_bytes_per_step {
        let selected = bytes(selected as usize);
        page.text(format!("no buffer   a step would copy all rows that it selects, {selected}"));
        page.text(
            "per step    misses of one layer and request, bytes of all; means after the first step",
        );
    }
    if let Some(m) = &report.model {
        page.text(format!(
            "model       TPOT = ({} ms + copied bytes / {} GB/s) / {:.2} tokens per step; not measured, \
             without the time of matching",
            m.step_ms, m.link_gbs, m.accepted
        ));
    }
    page.table(table(report, curve));
    if report.lru_curve.is_empty() {
        page.text("No step after the first selects an id, so there is no hit rate.");
        return page;
    }
    report.least.iter().for_each(|least| page.text(sentence(report, least)));
    page
}

fn table(report: &Report, curve: bool) -> Table {
    let mut columns =
        vec!["S", "AVSG, %", "exact LRU, %", "misses per step", "bytes per step", "device bytes"];
    if report.model.is_some() {
        columns.push("TPOT by the model, ms");
    }
    let mut table = Table::new(columns);
    let mut points = report.points.iter().peekable();
    let between = report.lru_curve.iter().filter(|_| curve);
    for computed in between {
        while let Some(point) = points.next_if(|point| (point.slots as usize) < computed.slots) {
            table.add_row(row(point));
        }
        match points.next_if(|point| point.slots as usize == computed.slots) {
            Some(point) => table.add_row(row(point)),
            None => table.add_row([
                computed.slots.into(),
                Cell::none(),
                Cell::number(computed.hit_rate, 2),
            ]),
        }
    }
    points.for_each(|point| table.add_row(row(point)));
    table
}

fn row(point: &Point) -> Vec<Cell> {
    let number = |value: Option<f64>, decimals| {
        value.map_or_else(Cell::none, |value| Cell::number(value, decimals))
    };
    let size = |value: f64| Cell::shown(value, bytes(value as usize));
    vec![
        point.slots.into(),
        number(point.hit_rate, 2),
        number(point.lru_hit_rate, 2),
        number(point.misses_per_step, 1),
        point.bytes_per_step.map_or_else(Cell::none, size),
        size(point.device_bytes as f64),
        // Without a model the table has no column for it.
        number(point.tpot_ms, 2),
    ]
}

/// Says the answer to a wish in one line.
fn sentence(report: &Report, least: &Least) -> String {
    let wish = match (least.wanted.tpot_ms, least.wanted.hit_rate) {
        (None, rate) => format!("{} % of hits", rate.unwrap_or_default()),
        (Some(ms), Some(rate)) => format!("{ms} ms per token by the model, {rate:.2} % of hits"),
        (Some(ms), None) => {
            let model = report.model.as_ref();
            let step = model.map_or(f64::NAN, |model| model.tpot_ms(0.0));
            return format!(
                "least S     for {ms} ms per token by the model: none, because a step without copies \
                 already takes {step:.2} ms per token"
            );
        }
    };
    let measured = least.slots.and_then(|slots| report.points.iter().find(|p| p.slots == slots));
    let ours = match measured.and_then(|point| Some((point.slots, point.hit_rate?))) {
        Some((slots, rate)) => format!("{slots} ({rate:.2} %)"),
        None => format!("none of the {} measured S has it", report.points.len()),
    };
    let lru = match least.lru_slots {
        Some(slots) if report.lru_curve.first().is_some_and(|least| least.slots == slots) => {
            format!("exact LRU has it at the least S, {slots}")
        }
        Some(slots) => format!("exact LRU needs {slots}"),
        None => "exact LRU never has it".to_owned(),
    };
    format!("least S     for {wish}: {ours}; {lru}")
}

/// Draws the hit rates over S.
pub fn chart(folder: &Path, report: &Report) -> Result<()> {
    let stride = report.lru_curve.len().div_ceil(CHART_POINTS).max(1);
    let last = report.lru_curve.last();
    let curve = report.lru_curve.iter().step_by(stride).chain(last);
    let mut curve: Vec<_> = curve.map(|p| (p.slots as f64, p.hit_rate)).collect();
    curve.dedup();
    let measured = report.points.iter().filter_map(|p| Some((f64::from(p.slots), p.hit_rate?)));
    let series = [
        Series { name: "exact LRU".into(), points: curve },
        Series { name: "AVSG".into(), points: measured.collect() },
    ];
    let path = folder.join("size-hit-rate.svg");
    let title = format!("Hit rate, {}", report.trace);
    Ok(draw::lines(path, &title, "S, slots per request and layer", "hit rate, %", &series)?)
}
