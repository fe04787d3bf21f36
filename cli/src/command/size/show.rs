//! The figures of `avsg size` as a page and as a chart.

use std::path::Path;

use anyhow::Result;

use super::disk::Disk;
use super::report::{Copies, Report, Wish};
use super::time::{Model, Times};
use crate::baseline::{LRU, NO_BUFFER};
use crate::command::hit_rates::{self, Subject};
use crate::command::output::{Cell, Page, Table, bytes, count};
use crate::disk::Speeds;
use crate::draw::{Series, Shape};

/// Points of the LRU curve in a chart, at most.
const CHART_POINTS: usize = 48;
/// Columns of the label before a fact.
const LABEL: usize = 12;

/// Returns the page: what was measured, a row for each S, and the recommended one.
pub fn page(report: &Report) -> Page {
    let mut page = Page::default();
    fact(&mut page, "trace", &format!("{}: {}", report.trace, count(report.steps, "step")));
    fact(&mut page, "taken as", &report.taken);
    if let Some(f) = &report.friendliness {
        let words = format!(
            "{:.2} % of ids are first-time, so {:.2} % of hits is the ceiling; {:.2} % repeat from the step \
             before",
            f.first_time, f.ceiling, f.step_before
        );
        fact(&mut page, "friendly", &words);
    }
    fact(&mut page, "deployment", &deployed(report));
    page.table(sizes(report));
    if let (Some(model), Some(_)) = (&report.model, &report.no_buffer) {
        fact(&mut page, "model", &formula(report, model));
        page.table(times(report));
        if let Some(disk) = &model.disk {
            fact(&mut page, "disk", &described(disk));
            page.table(disk_times(report));
        }
    }
    match &report.no_buffer {
        Some(_) => advice(&mut page, report),
        None => page.text("No step after the first selects an id, so there is no hit rate."),
    }
    page
}

/// Returns the deployment in words, with the options that change it.
fn deployed(report: &Report) -> String {
    let d = &report.deployment;
    let each = if report.layers > 1 { "the mean of the layers" } else { "the one" };
    format!(
        "{} (--layers), {} (--indexers), {} (--requests), all like {each} in the trace; {} of context \
         (--context) in rows of {} bytes (--row-bytes): {} in the host pool",
        count(d.layers, "layer"),
        count(d.indexers, "indexer"),
        count(d.requests, "request"),
        count(d.context, "token"),
        d.row_bytes,
        bytes(d.host_bytes)
    )
}

/// Adds words behind a label.
fn fact(page: &mut Page, label: &str, words: &str) {
    page.text(format!("{label:LABEL$}{words}"));
}

/// Returns what a step copies and the memory at each S.
fn sizes(report: &Report) -> Table {
    let several = report.layers > 1;
    let two_rules = report.points.iter().any(|point| point.other_rule.is_some());
    let mut columns = vec!["S", "rule", "hits, %"];
    columns.extend(two_rules.then_some("other rule, %"));
    columns.extend(several.then_some("worst, %"));
    columns.extend(["copied bytes", "device bytes"]);
    let mut table = Table::new(columns).titled("a step of the deployment, mean after the first");
    let size = |value: f64| Cell::shown(value, bytes(value as usize));
    let copied = |copies: &Option<Copies>| {
        copies.as_ref().map_or_else(Cell::none, |copies| size(copies.bytes_per_step))
    };
    let percent = |rate: Option<f64>| rate.map_or_else(Cell::none, |rate| Cell::number(rate, 2));
    let mut row = vec![Cell::none(), NO_BUFFER.into(), Cell::none()];
    row.extend([two_rules, several].into_iter().filter(|shown| *shown).map(|_| Cell::none()));
    row.push(copied(&report.no_buffer));
    table.add_row(row);
    for point in &report.points {
        let mut row = vec![point.slots.into(), (&point.lifetime).into(), percent(point.hit_rate)];
        let other = point.other_rule.as_ref().and_then(|other| other.hit_rate);
        row.extend(two_rules.then(|| percent(other)));
        let worst = point.worst_layer.as_ref().map(|worst| worst.hit_rate);
        row.extend(several.then(|| percent(worst)));
        row.extend([copied(&point.copies), size(point.device_bytes as f64)]);
        table.add_row(row);
    }
    table
}

fn times(report: &Report) -> Table {
    let columns = [
        "S",
        "matching, us per token",
        "matching, ms per step",
        "copies, ms per step",
        "ms per token",
        "speed-up",
    ];
    let figures: [fn(&Times) -> f64; 5] =
        [|t| t.match_us, |t| t.matching_ms, |t| t.copy_ms, |t| t.tpot_ms, |t| t.speed_up];
    timed(report, columns, figures).titled("time by the model")
}

/// Returns what a step reads from the disk and how long it takes.
fn disk_times(report: &Report) -> Table {
    let columns = [
        "S",
        "reads per step",
        "reads, ms per step",
        "ms per token",
        "speed-up",
        "ms per token, host memory",
    ];
    let figures: [fn(&Times) -> f64; 5] = [
        |t| t.disk.map_or(f64::NAN, |disk| disk.reads_per_step),
        |t| t.disk.map_or(f64::NAN, |disk| disk.read_ms),
        |t| t.disk.map_or(f64::NAN, |disk| disk.tpot_ms),
        |t| t.disk.map_or(f64::NAN, |disk| disk.speed_up),
        |t| t.tpot_ms,
    ];
    let title = "time by the model with rows on the disk, beside host memory";
    timed(report, columns, figures).titled(title)
}

/// Returns a table of times without a buffer and at each S, with their ranges.
fn timed(report: &Report, columns: [&str; 6], figures: [fn(&Times) -> f64; 5]) -> Table {
    let mut table = Table::new(columns);
    let mut add = |name: Cell, copies: &Option<Copies>| {
        let times = copies.as_ref().and_then(|copies| Some((copies.times?, copies.range)));
        let cell = |of: fn(&Times) -> f64| {
            let Some((times, range)) = &times else { return Cell::none() };
            let range = range.as_ref().map(|range| range.each_ref().map(of));
            Cell::shown(of(times), ranged(of(times), range))
        };
        table.add_row(std::iter::once(name).chain(figures.map(cell)));
    };
    add(NO_BUFFER.into(), &report.no_buffer);
    report.points.iter().for_each(|point| add(point.slots.into(), &point.copies));
    table
}

/// Formats a number, and behind it the range that its measurements give it.
fn ranged(value: f64, range: Option<[f64; 2]>) -> String {
    match range.map(|[a, b]| [a.min(b), a.max(b)].map(short)) {
        Some([low, high]) if low != high => format!("{} ({low} to {high})", short(value)),
        _ => short(value),
    }
}

/// Returns a disk and its records in words.
fn described(disk: &Disk) -> String {
    let Speeds { reads_per_second, gbs, us } = disk.speeds;
    let from = match &disk.folder {
        Some(folder) => format!("measured in {folder}"),
        None => "as given".to_owned(),
    };
    format!(
        "{} reads per second, {} GB/s, {} us for a read alone, {from}; blocks of {}: a read of a row for all \
         layers of an indexer has at most {} bytes, and {:.1} % of {} are padding; a step waits for each \
         indexer for {} us + its reads by their number or bandwidth",
        short(reads_per_second),
        short(gbs),
        short(us),
        disk.block,
        disk.record_bytes,
        disk.padding_percent,
        bytes(disk.file_bytes as usize),
        short(us)
    )
}

/// Formats a number with three digits or more: 0.012, 1.23, 12.3, 123.
fn short(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}

/// Returns the formula of the model with its constants in words.
fn formula(report: &Report, model: &Model) -> String {
    let rest = match model.step_ms {
        Some(ms) => format!("{ms} ms of the step + "),
        None => String::new(),
    };
    let alone = match model.step_ms {
        Some(_) => "",
        None => ", of the KV offload alone (--step-ms adds the rest of a step)",
    };
    let matching = match model.match_us {
        Some(us) => format!("{us} us as given"),
        None => {
            let slow = if cfg!(debug_assertions) { " by a build without optimisation" } else { "" };
            format!(
                "measured on this machine's CPU with {}{slow}, the median of {} and in parentheses the first and \
                 ninth decile; --match-us takes that of your device",
                model.machine,
                count(report.steps, "step")
            )
        }
    };
    let link = match model.link_measured {
        true => " (measured: a core of this machine copies rows in its memory)",
        false => "",
    };
    let link_gbs =
        if model.link_measured { short(model.link_gbs) } else { model.link_gbs.to_string() };
    format!(
        "ms per token = ({rest}matching + copied bytes / {} GB/s{link}) / {:.2} tokens per step{alone}; matching of \
         a token with K = {}: {matching}; each request matches on a core of its own",
        link_gbs, model.accepted, report.k
    )
}

/// Adds the recommended S and rule, and the reason.
fn advice(page: &mut Page, report: &Report) {
    let chosen = report.recommended.as_ref();
    let place = chosen.and_then(|best| report.points.iter().position(|p| p.slots == best.slots));
    let Some(at) = place else { return fact(page, "take", &unmet(report)) };
    let point = &report.points[at];
    let worst = point.worst_layer.as_ref();
    let worst = worst.map(|w| format!(", {:.2} % in the worst layer, {}", w.hit_rate, w.layer));
    let words = format!(
        "S = {} with the rule {}: {:.2} % of hits{}",
        point.slots,
        named(&point.lifetime),
        point.hit_rate.unwrap_or_default(),
        worst.unwrap_or_default()
    );
    fact(page, "take", &words);
    fact(page, "why", &reason(report, at));
}

/// Returns why the point at a place is recommended, and what speaks against any buffer.
fn reason(report: &Report, at: usize) -> String {
    let point = &report.points[at];
    let context = report.deployment.host_bytes;
    let pays = at > 0 && point.pays(&report.points[at - 1]);
    let mut words = match pays {
        _ if !report.wish.is_none() => format!("the least measured S with {}", wished(&report.wish)),
        true => {
            "the last S that pays: it divides the copies by at least as much as it multiplies the slots".to_owned()
        }
        false if report.points.len() == 1 => "the only measured S".to_owned(),
        false => {
            "no larger S pays: none divides the copies by as much as it multiplies the slots".to_owned()
        }
    };
    let rows = format!("all rows of the context, {}", bytes(context));
    let left_out = || report.points[at..].windows(2).any(|pair| pair[1].pays(&pair[0]));
    if point.device_bytes >= context {
        words += &format!("; but it takes at least as much device memory as {rows}");
    } else if report.wish.is_none() && left_out() {
        words += &format!(" (left out are S that take at least as much device memory as {rows})");
    }
    let times = point.copies.as_ref().and_then(|copies| copies.times);
    if times.is_some_and(|times| times.deciding().1 < 1.0) {
        words += "; but no buffer is faster, because matching takes longer than what it saves";
    }
    words
}

/// Says that no measured S has the wish, and what comes nearest.
fn unmet(report: &Report) -> String {
    let most = report.points.iter().filter_map(|p| p.hit_rate).fold(0.0, f64::max);
    let times = report.points.iter().filter_map(|p| p.copies.as_ref()?.times);
    let least = times.map(|times| times.deciding().0).fold(f64::INFINITY, f64::min);
    let time =
        report.wish.tpot_ms.map(|_| format!(", and the least is {} ms per token", short(least)));
    format!(
        "none: no measured S has {}; the most is {most:.2} % of hits{}",
        wished(&report.wish),
        time.unwrap_or_default()
    )
}

fn wished(wish: &Wish) -> String {
    let hits = wish.hit_rate.map(|rate| format!("{rate} % of hits"));
    let time = wish.tpot_ms.map(|ms| format!("at most {ms} ms per token"));
    hits.into_iter().chain(time).collect::<Vec<_>>().join(" and ")
}

/// Returns a rule with its meaning.
fn named(lifetime: &str) -> String {
    let meaning = if lifetime == "learned" {
        "each request learns what to keep"
    } else {
        "least recently used"
    };
    format!("{lifetime} ({meaning})")
}

/// Draws the measured hit rates, and the curve of exact LRU.
pub fn chart(folder: &Path, report: &Report) -> Result<()> {
    let stride = report.lru_curve.len().div_ceil(CHART_POINTS).max(1);
    // The last point of the curve has all hits that exact LRU can have, and so has every larger S.
    let end = report.points.last().map_or(0, |point| point.slots as usize);
    let last = report.lru_curve.last().map(|last| (last.slots.max(end) as f64, last.hit_rate));
    let curve = report.lru_curve.iter().step_by(stride).chain(report.lru_curve.last());
    let curve = curve.map(|p| (p.slots as f64, p.hit_rate)).chain(last).collect();
    let measured = report.points.iter().filter_map(|p| Some((f64::from(p.slots), p.hit_rate?)));
    let series = [
        Series { name: LRU.into(), shape: Shape::Curve, points: curve },
        Series { name: "AVSG".into(), shape: Shape::Marks, points: measured.collect() },
    ];
    let &Report { ref trace, steps, tokens, k, .. } = report;
    let subject = Subject { trace, steps, tokens, k };
    hit_rates::chart(&folder.join("size-hit-rate.svg"), &subject, &series)
}
