//! The output of an estimate on the terminal.

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

/// The largest ratio of Stage One's time to the paper's that meets the target.
const TARGET: f64 = 0.5;

/// Formats a ratio with two decimals, or with so many that a ratio other than the target does not look
/// like it.
fn ratio(value: f64) -> String {
    let format = |value: f64, decimals: usize| format!("{value:.decimals$}");
    let differs = |&decimals: &usize| format(value, decimals) != format(TARGET, decimals);
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
    let pending: Vec<String> = n.pending.iter().map(|n| format!("{n:.0}")).collect();
    println!(
        "Means of {} steps: {:.1} hits; {:.1} misses; ids pending before the later rounds of Probe {}; \
         {:.1} passes that count lifetimes; {:.1} link searches; {:.1} links written; {:.1} hits refreshed \
         before victims are chosen",
        n.steps,
        n.hits,
        n.misses,
        pending.join(" "),
        n.counts,
        n.seeks,
        n.claims,
        n.early
    );
    phases(r);
    totals(r);
    if !r.points.is_empty() {
        points(r);
    }
    for c in r.constants.iter().filter(|c| !c.in_range) {
        let [lo, hi] = c.range;
        println!("{} = {} is outside of its range {lo}..{hi}", c.name, c.value);
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
    println!("{t}\nOur Stage One by unit of work, without the launch ({LABEL})");
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
    println!("{t}\nStage One over the rate of Gather, which is not published ({LABEL})");
    let mut t = table([
        "Gather, words/cycle",
        "paper, us",
        "ours, us",
        "ours / paper",
        "ours unshared, us",
        "ours unshared / paper",
    ]);
    for x in &r.gather {
        t.add_row([
            x.gather.to_string(),
            one_decimal(x.paper_us),
            one_decimal(x.ours_us),
            ratio(x.ratio),
            one_decimal(x.unshared_us),
            ratio(x.unshared_ratio),
        ]);
    }
    println!("{t}");
    let worst = r.gather.iter().map(|x| x.ratio).fold(0.0, f64::max);
    println!(
        "Unshared means one core per request, as in a batch with many requests.\n\
         Target: ours / paper is at most {TARGET} at every rate of Gather. {}: the largest is {}.",
        if r.target_met { "Met" } else { "MISSED" },
        ratio(worst)
    );
    println!("\nTime that the optimisations save in our Stage One ({LABEL})");
    let mut t = table(["variant", "us", "saving, us"]);
    for v in &r.variants {
        t.add_row([v.variant.into(), one_decimal(v.stage_one_us), one_decimal(v.saves_us)]);
    }
    println!(
        "{t}\nThe saving is that of the missing optimisation. Compaction and deferral are compared with\n\
         the variant without sharing."
    );
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
    let mut t = table(["constant", "value", "range", "unit", "meaning and source"]);
    for c in all {
        let range = format!("{}..{}", c.range[0], c.range[1]);
        t.add_row([c.name, &c.value.to_string(), &range, c.unit, c.source]);
    }
    println!("{t}");
}
