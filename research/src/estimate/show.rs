//! The output of an estimate: text and tables.

use super::ranges::{GOAL, Goal};
use super::report::{FromDoctor, LABEL, Report, UsedConstant};
use avsg_cli::command::output::{Cell, Page, Table, count, table};
use avsg_linker::ascend::limits::UB_BYTES;

/// Returns a number that readers see with one decimal.
fn one_decimal(value: f64) -> Cell {
    Cell::number(value, 1)
}

/// Returns a number with one decimal, or a cell without a value.
fn or_none(value: Option<f64>) -> Cell {
    value.map_or_else(Cell::none, one_decimal)
}

/// Returns a ratio that readers see with two decimals, or with so many that a ratio other than the goal
/// does not look like it.
fn ratio(value: f64) -> Cell {
    let format = |value: f64, decimals: usize| format!("{value:.decimals$}");
    let differs = |&decimals: &usize| format(value, decimals) != format(GOAL, decimals);
    Cell::shown(value, format(value, (2..=17).find(differs).unwrap_or(2)))
}

/// Returns a report as text and tables.
pub fn report(r: &Report) -> Page {
    let mut page = Page::default();
    let Report { k, slots, table, spread, retries, soc, cores, mhz, .. } = r;
    page.text(format!("{soc}: {cores} vector cores at {mhz} MHz ({LABEL})"));
    page.text(format!(
        "K {k}, S {slots}, table {table}, spread {spread}, R {retries}; {} of {UB_BYTES} bytes of UB",
        r.ub_bytes
    ));
    let n = &r.counts;
    page.text(format!(
        "Means of {} steps: {:.1} hits, {:.1} misses, {:.1} misses in the paper's table",
        n.steps, n.hits, n.misses, n.paper_misses
    ));
    if let Some(doctor) = &r.doctor {
        from_doctor(&mut page, doctor);
    }
    page.table(phases(r));
    page.table(pipes(r));
    page.table(totals(r));
    page.table(ranges(r));
    page.table(goals(r));
    for Goal { of, largest, .. } in &r.goals {
        page.text(format!("{of}: the largest is at {}.", largest.set.join(" ")));
    }
    page.table(code(r));
    page.table(variants(r));
    page.text("Deferral is compared with the variant without sharing.");
    if !r.points.is_empty() {
        page.table(points(r));
    }
    for c in r.constants.iter().filter(|c| !c.in_range) {
        let [lo, hi] = c.range;
        page.text(format!("{} = {} is outside of its range {lo} to {hi}", c.name, c.value));
    }
    page
}

/// Adds what a report of `avsg doctor` gives.
fn from_doctor(page: &mut Page, doctor: &FromDoctor) {
    let FromDoctor { simulated, soc, taken, kept, others, times } = doctor;
    let how = if *simulated { "the simulated device: its times are a model, too" } else { *soc };
    let mut constants = table(["constant", "value", "least", "most", "unit", "default", "range"]);
    for c in taken {
        let [low, high] = c.measured_range.map(|v| Cell::number(v, 3));
        let [lo, hi] = c.range;
        let range = if c.in_range { format!("{lo}..{hi}") } else { format!("OUTSIDE {lo}..{hi}") };
        let value = Cell::number(c.value, 3);
        let unit = c.unit.into();
        constants.add_row([
            c.constant.into(),
            value,
            low,
            high,
            unit,
            c.default.into(),
            range.into(),
        ]);
    }
    page.table(constants.titled(format!("Constants from the report of {how}")));
    let mut stay = table(["constant", "value", "unit", "why it keeps its value"]);
    for c in kept {
        stay.add_row([c.constant.into(), c.value.into(), c.unit.into(), Cell::from(&c.reason)]);
    }
    page.table(stay.titled("Constants that the report does not give"));
    for other in others {
        let (cycles, [low, high]) = (other.cycles, other.measured_range);
        let name = other.name;
        page.text(format!(
            "{name}: {cycles:.1} cycles ({low:.1} to {high:.1}), which no constant has"
        ));
    }
    let us = |value: Option<f64>| value.map_or_else(Cell::none, |us| Cell::number(us, 3));
    let columns = [
        "time of",
        "cores",
        "measured, us",
        "least",
        "most",
        "clocks in the report",
        "model, us",
        "its code, us",
    ];
    let mut beside = table(columns);
    for t in times {
        let [low, high] = [0, 1].map(|end| us(t.measured_range_us.map(|range| range[end])));
        let cores = Cell::from(t.cores as usize);
        let (measured, clocks) = (us(t.measured_us), us(t.clocks_us));
        let (model, fetches) = (us(t.model_us), us(t.fetches_us));
        beside.add_row([(&t.time).into(), cores, measured, low, high, clocks, model, fetches]);
    }
    page.table(beside.titled("Measured times beside those of the model with these constants"));
    page.text(
        "The model takes all code to be in the instruction cache. The last column is what a kernel takes longer if each \
         line of its code is fetched once and waited for.",
    );
}

fn phases(r: &Report) -> Table {
    let mut t = table(["phase", "cycles", "S", "V", "MTE2", "MTE3", "ours, us", "paper, us"]);
    for p in &r.phases {
        let [cycles, s, v, mte2, mte3] =
            [p.cycles, p.work[0], p.work[1], p.work[2], p.work[3]].map(|n| Cell::number(n, 0));
        let (us, paper_us) = (one_decimal(p.us), one_decimal(p.paper_us));
        t.add_row([p.phase.into(), cycles, s, v, mte2, mte3, us, paper_us]);
    }
    t.titled(format!(
        "Stage One of the first request by phase, and the cycles in which each pipe works ({LABEL})"
    ))
}

fn pipes(r: &Report) -> Table {
    let mut t = table(["kernel", "pipe", "work, %", "work", "barriers", "flags", "issue"]);
    for p in &r.pipes {
        let [work, barriers, flags, issue] =
            [p.work, p.barriers, p.flags, p.issue].map(|n| Cell::number(n, 0));
        let percent = Cell::number(p.work_percent, 0);
        t.add_row([p.kernel.into(), p.pipe.into(), percent, work, barriers, flags, issue]);
    }
    t.titled(format!("Cycles of the pipes in Stage One: work, and what they wait for ({LABEL})"))
}

fn totals(r: &Report) -> Table {
    let mut t = table(["kernel", "Stage One, us", "Stage Two, us", "learning, us", "step, us"]);
    for x in &r.totals {
        t.add_row([
            x.kernel.into(),
            one_decimal(x.stage_one_us),
            one_decimal(x.stage_two_us),
            one_decimal(x.learn_us),
            one_decimal(x.step_us),
        ]);
    }
    t.titled(format!("A step of {}, SyncAll included ({LABEL})", count(r.requests, "request")))
}

fn code(r: &Report) -> Table {
    let mut t = table([
        "kernel",
        "code, bytes",
        "of it per token",
        "lines fetched",
        "calls",
        "us, both free",
        "us, fetch low",
        "us",
        "us, fetch high",
    ]);
    for row in &r.code {
        let [low, value, high] = row.us.map(one_decimal);
        t.add_row([
            row.kernel.into(),
            row.bytes.into(),
            if row.token_bytes > 0 { row.token_bytes.into() } else { Cell::none() },
            Cell::number(row.lines, 0),
            Cell::number(row.calls, 0),
            one_decimal(row.free_us),
            low,
            value,
            high,
        ]);
    }
    t.titled(format!("Code, its fetches and calls, and Stage One after the start ({LABEL})"))
}

fn variants(r: &Report) -> Table {
    let mut t = table(["variant", "us", "saving, us"]);
    for v in &r.variants {
        t.add_row([v.variant.into(), one_decimal(v.stage_one_us), one_decimal(v.saves_us)]);
    }
    t.titled(format!("Time that the optimisations save in our Stage One ({LABEL})"))
}

fn ranges(r: &Report) -> Table {
    let mut t = table([
        "constant",
        "low end",
        "high end",
        "unit",
        "ours, us, at low",
        "ours / paper at low",
        "ours, us, at high",
        "ours / paper at high",
    ]);
    for x in &r.ranges {
        t.add_row([
            x.constant.into(),
            x.range[0].into(),
            x.range[1].into(),
            x.unit.into(),
            one_decimal(x.low.ours_us),
            ratio(x.low.ratio),
            one_decimal(x.high.ours_us),
            ratio(x.high.ratio),
        ]);
    }
    t.titled(format!("Stage One over the range of each constant, the others as they are ({LABEL})"))
}

fn goals(r: &Report) -> Table {
    let mut t =
        table(["part", "ours, us", "paper, us", "ours / paper", "smallest", "largest", "goal"]);
    for g in &r.goals {
        t.add_row([
            g.of.into(),
            one_decimal(g.value.ours_us),
            one_decimal(g.value.paper_us),
            ratio(g.value.ratio),
            ratio(g.smallest.times.ratio),
            ratio(g.largest.times.ratio),
            if g.met { "met" } else { "MISSED" }.into(),
        ]);
    }
    t.titled(format!(
        "The goal, ours / paper at most {GOAL}, over the ranges of all constants ({LABEL})"
    ))
}

fn points(r: &Report) -> Table {
    let mut t = table([
        "time of",
        "K",
        "S",
        "paper measured, us",
        "paper modelled, us",
        "error of the model, %",
        "ours modelled, us",
    ]);
    for p in &r.points {
        t.add_row([
            p.what.into(),
            p.k.into(),
            p.slots.into(),
            one_decimal(p.paper_us),
            one_decimal(p.model_us),
            Cell::shown(p.error_percent, format!("{:+.0}", p.error_percent)),
            or_none(p.ours_us),
        ]);
    }
    t.titled(format!(
        "Figures that the paper measured, and the model on the paper's workload and chip ({LABEL})"
    ))
}

/// Returns the constants as a table.
pub fn constants(all: &[UsedConstant]) -> Page {
    let mut t = table(["constant", "value", "range", "unit", "meaning", "document and section"]);
    for c in all {
        let [lo, hi] = c.range;
        let range = if lo < hi { format!("{lo}..{hi}") } else { "-".into() };
        let document = c.document.unwrap_or("-");
        t.add_row([
            c.name.into(),
            c.value.into(),
            range.into(),
            c.unit.into(),
            c.source.into(),
            Cell::from(document),
        ]);
    }
    let mut page = Page::default();
    page.table(t);
    page
}
