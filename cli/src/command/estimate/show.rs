//! The output of an estimate on the terminal.

use super::ranges::{GOAL, Goal};
use super::report::{LABEL, Report, UsedConstant};
use crate::command::output::{count, table};
use avsg_linker::ascendc::limits::UB_BYTES;

/// Formats a number with one decimal.
fn one_decimal(value: f64) -> String {
    format!("{value:.1}")
}

/// Formats a number with one decimal; `-` if there is none.
fn or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), one_decimal)
}

/// Formats a ratio with two decimals, or with so many that a ratio other than the goal does not look
/// like it.
fn ratio(value: f64) -> String {
    let format = |value: f64, decimals: usize| format!("{value:.decimals$}");
    let differs = |&decimals: &usize| format(value, decimals) != format(GOAL, decimals);
    format(value, (2..=17).find(differs).unwrap_or(2))
}

/// Prints a report.
pub fn report(r: &Report) {
    let Report { k, slots, table, spread, retries, tile, soc, cores, mhz, .. } = r;
    println!("{soc}: {cores} vector cores at {mhz} MHz ({LABEL})");
    println!(
        "K {k}, S {slots}, table {table}, spread {spread}, R {retries}, tile {tile}; {} of {UB_BYTES} bytes of UB",
        r.ub_bytes
    );
    let n = &r.counts;
    println!(
        "Means of {} steps: {:.1} hits; {:.1} misses; {:.1} passes that count lifetimes; {:.1} link searches; {:.1} links written; {:.1} hits refreshed \
         before victims are chosen",
        n.steps, n.hits, n.misses, n.counts, n.seeks, n.claims, n.early
    );
    phases(r);
    totals(r);
    if !r.points.is_empty() {
        points(r);
    }
    for c in r.constants.iter().filter(|c| !c.in_range) {
        let [lo, hi] = c.range;
        println!("{} = {} is outside of its range {lo} to {hi}", c.name, c.value);
    }
}

fn phases(r: &Report) {
    println!("\nStage One of one request by phase ({LABEL})");
    let mut t = table([
        "phase",
        "vector ops",
        "words gathered",
        "scalar accesses",
        "cycles",
        "ours, us",
        "paper, us",
    ]);
    for p in &r.phases {
        let [ops, gathers, scalars, cycles] =
            [p.vector_ops, p.gathers, p.scalars, p.cycles].map(|n| format!("{n:.0}"));
        let (us, paper_us) = (one_decimal(p.us), or_dash(p.paper_us));
        t.add_row([p.phase.into(), ops, gathers, scalars, cycles, us, paper_us]);
    }
    println!("{t}\nOur Stage One by unit of work, after the start of the kernel ({LABEL})");
    let mut t = table(["unit of work", "cycles", "us"]);
    for term in &r.terms {
        t.add_row([term.unit.into(), format!("{:.0}", term.cycles), one_decimal(term.us)]);
    }
    println!("{t}");
}

fn totals(r: &Report) {
    println!("\nA step of {}, SyncAll included ({LABEL})", count(r.requests, "request"));
    let mut t = table(["kernel", "Stage One, us", "Stage Two, us", "step, us"]);
    for x in &r.totals {
        t.add_row([
            x.kernel.into(),
            one_decimal(x.stage_one_us),
            one_decimal(x.stage_two_us),
            one_decimal(x.step_us),
        ]);
    }
    println!("{t}");
    ranges(r);
    println!("\nTime that the optimisations save in our Stage One ({LABEL})");
    let mut t = table(["variant", "us", "saving, us"]);
    for v in &r.variants {
        t.add_row([v.variant.into(), one_decimal(v.stage_one_us), one_decimal(v.saves_us)]);
    }
    println!(
        "{t}\nThe saving is that of the missing optimisation. Deferral is compared with the variant without\n\
         sharing."
    );
}

fn ranges(r: &Report) {
    println!("\nStage One over the range of each constant, the others as they are ({LABEL})");
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
            x.range[0].to_string(),
            x.range[1].to_string(),
            x.unit.into(),
            one_decimal(x.low.ours_us),
            ratio(x.low.ratio),
            one_decimal(x.high.ours_us),
            ratio(x.high.ratio),
        ]);
    }
    println!(
        "{t}\nThe goal, ours / paper at most {GOAL}, over the ranges of all constants ({LABEL})"
    );
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
    println!("{t}");
    for Goal { of, largest, .. } in &r.goals {
        println!("{of}: the largest is at {}.", largest.set.join(" "));
    }
}

fn points(r: &Report) {
    println!(
        "\nFigures that the paper measured, and the model on the paper's workload and chip ({LABEL})"
    );
    let mut t = table([
        "time of",
        "K",
        "S",
        "paper measured, us",
        "paper modelled, us",
        "error of the model",
        "ours modelled, us",
    ]);
    for p in &r.points {
        t.add_row([
            p.what.into(),
            p.k.to_string(),
            p.slots.to_string(),
            one_decimal(p.paper_us),
            one_decimal(p.model_us),
            format!("{:+.0} %", p.error_percent),
            or_dash(p.ours_us),
        ]);
    }
    println!("{t}");
}

/// Prints the constants.
pub fn constants(all: &[UsedConstant]) {
    let mut t = table(["constant", "value", "range", "unit", "meaning", "document and section"]);
    for c in all {
        let [lo, hi] = c.range;
        let range = if lo < hi { format!("{lo}..{hi}") } else { "-".into() };
        let document = c.document.unwrap_or("-");
        t.add_row([c.name, &c.value.to_string(), &range, c.unit, c.source, document]);
    }
    println!("{t}");
}
