//! An estimate on the terminal.

use super::report::{LABEL, Report, Set};
use crate::command::output::table;
use avsg_linker::ascendc::limits::UB_BYTES;

fn one(value: f64) -> String {
    format!("{value:.1}")
}

fn some(value: Option<f64>) -> String {
    value.map_or_else(String::new, one)
}

/// Prints it.
pub fn report(r: &Report) {
    let Report { k, slots, table, spread, retries, tile, soc, cores, mhz, .. } = r;
    println!("{soc}: {cores} vector cores at {mhz} MHz. {LABEL}.");
    println!(
        "K {k}, S {slots}, table {table}, spread {spread}, R {retries}, tile {tile}; {} of {UB_BYTES} bytes of UB",
        r.ub_bytes
    );
    let n = &r.counts;
    let pending: Vec<String> = n.pending.iter().map(|n| format!("{n:.0}")).collect();
    println!(
        "A step, mean of {}: {:.1} hits, {:.1} misses; pending before later rounds {}; {:.1} counts for the \
         threshold, {:.1} link searches, {:.1} claims; {:.1} of the hits are refreshed early",
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
    whole(r);
    if !r.points.is_empty() {
        beside(r);
    }
    for c in r.constants.iter().filter(|c| !c.in_range) {
        let [lo, hi] = c.range;
        println!("{} = {} is outside of its documented range {lo}..{hi}", c.name, c.value);
    }
}

fn phases(r: &Report) {
    println!("\nOne request's Stage One as emitted, by phase ({LABEL})");
    let mut t = table(["phase", "vector ops", "gathers", "scalars", "cycles", "us", "paper, us"]);
    for p in &r.phases {
        let [ops, gathers, scalars, cycles] =
            [p.vector_ops, p.gathers, p.scalars, p.cycles].map(|n| format!("{n:.0}"));
        t.add_row([p.phase.into(), ops, gathers, scalars, cycles, one(p.us), some(p.paper_us)]);
    }
    println!("{t}\nWhere ours spends it, launch aside ({LABEL})");
    let mut t = table(["what", "cycles", "us"]);
    for term in &r.terms {
        t.add_row([term.unit.into(), format!("{:.0}", term.cycles), one(term.us)]);
    }
    println!("{t}");
}

fn whole(r: &Report) {
    println!("\nA step of {} request(s), SyncAll included ({LABEL})", r.requests);
    let mut t = table(["kernel", "Stage One, us", "Stage Two, us", "step, us"]);
    for x in &r.totals {
        t.add_row([x.kernel.into(), one(x.stage_one_us), one(x.stage_two_us), one(x.step_us)]);
    }
    println!("{t}\nStage One over the assumed rate of Gather ({LABEL})");
    let mut t = table([
        "words/cycle",
        "paper, us",
        "ours, us",
        "ratio",
        "no core to share with, us",
        "ratio",
    ]);
    for x in &r.gather {
        let ratio = format!("{:.2}", x.ratio);
        let alone = format!("{:.2}", x.alone_ratio);
        t.add_row([
            x.gather.to_string(),
            one(x.paper_us),
            one(x.ours_us),
            ratio,
            one(x.alone_us),
            alone,
        ]);
    }
    println!("{t}");
    let worst = r.gather.iter().map(|x| x.ratio).fold(0.0, f64::max);
    println!(
        "Target: at most half of the modelled paper kernel at every rate. {}, at worst {worst:.2}.",
        if r.target_met { "Met" } else { "MISSED" }
    );
    println!("\nWhat the ideas save in Stage One ({LABEL})");
    let mut t = table(["variant", "us", "saved by it, us"]);
    for v in &r.variants {
        t.add_row([v.variant.into(), one(v.stage_one_us), one(v.saves_us)]);
    }
    println!("{t}");
}

fn beside(r: &Report) {
    println!("\nThe paper's figures, on its workload and chip; the model's and ours ({LABEL})");
    let mut t = table(["what", "K", "S", "paper, us", "model, us", "error", "ours, us"]);
    for p in &r.points {
        t.add_row([
            p.what.into(),
            p.k.to_string(),
            p.slots.to_string(),
            one(p.paper_us),
            one(p.model_us),
            format!("{:+.0} %", p.error_percent),
            some(p.ours_us),
        ]);
    }
    println!("{t}");
}

/// Prints the constants.
pub fn constants(all: &[Set]) {
    let mut t = table(["constant", "value", "range", "unit", "what it is, and its source"]);
    for c in all {
        let range = format!("{}..{}", c.range[0], c.range[1]);
        t.add_row([c.name, &c.value.to_string(), &range, c.unit, c.source]);
    }
    println!("{t}");
}
