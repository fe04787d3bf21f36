//! The hit rates of `avsg compare` as a page and as a chart.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::report::{Advice, Report};
use crate::baseline::{LRU, NO_BUFFER, NO_REPEATS, OPTIMUM};
use crate::command::output::{Cell, Page, Table};
use crate::draw;

/// Returns the page: the rule to take, one row per policy and one column per S, and what was assumed.
pub fn page(report: &Report) -> Page {
    let mut page = Page::default();
    report.taken.warning.iter().for_each(|warning| page.text(warning));
    page.text(verdict(report));
    let columns = report.slots.iter().map(|slots| format!("S = {slots}, %"));
    let mut table = Table::new(std::iter::once("policy".to_owned()).chain(columns));
    for equal in report.policies.chunk_by(|a, b| a.key() == b.key()) {
        let last = equal[equal.len() - 1].policy.split(':').nth(1).unwrap_or_default();
        let end = if equal.len() > 1 { format!(" to {last}") } else { String::new() };
        let cell = |&slots: &u32| {
            let rate = equal[0].at.iter().find(|at| at.slots == slots).and_then(|at| at.hit_rate);
            let advice = report.advice.iter().find(|advice| advice.slots == slots);
            let taken = advice.map(|advice| &advice.lifetime);
            let is_taken = equal.iter().any(|rates| Some(&rates.policy) == taken);
            let mark = if is_taken { " *" } else { "" };
            rate.map_or_else(Cell::none, |rate| Cell::shown(rate, format!("{rate:.2}{mark}")))
        };
        let name = Cell::from(format!("{}{end}", equal[0].policy));
        table.add_row(std::iter::once(name).chain(report.slots.iter().map(cell)));
    }
    page.table(&table);
    page.text("hits in percent after the first step; * is the rule to take");
    page.text(format!("assumed   {}", report.taken.words(false)));
    page
}

/// Says which rule to take at each S and what a step then copies.
fn verdict(report: &Report) -> String {
    if report.advice.is_empty() {
        return "No step after the first selects an id, so there is no hit rate.".to_owned();
    }
    let parts = report.advice.chunk_by(|a, b| a.lifetime == b.lifetime).map(|same| {
        let (first, last) = (&same[0], &same[same.len() - 1]);
        let ends = |of: &dyn Fn(&Advice) -> String| match [first, last].map(of) {
            [one, other] if one == other => one,
            [one, other] => format!("{one} to {other}"),
        };
        format!(
            "{} at S = {}: {} % of hits, a step copies {} rows",
            first.lifetime,
            ends(&|advice| advice.slots.to_string()),
            ends(&|advice| format!("{:.2}", advice.hit_rate)),
            ends(&|advice| format!("{:.1}", advice.misses_per_step))
        )
    });
    let enough = report.enough();
    let enough = enough.map(|least| format!("; more slots than {least} copy no fewer rows"));
    let parts = parts.collect::<Vec<_>>().join("; ");
    let gathers = [NO_BUFFER, NO_REPEATS].map(|gather| report.misses(gather).unwrap_or_default());
    format!(
        "take {parts}{}; a gather of every selected row copies {:.1}, one without repeats {:.1}",
        enough.unwrap_or_default(),
        gathers[0],
        gathers[1]
    )
}

/// Draws the hit rates at each S: the optimum, exact LRU, and the rule to take, with the least S that has all
/// hits.
pub fn chart(folder: &Path, report: &Report) -> Result<PathBuf> {
    let bound = |name: &'static str| {
        let rates = report.policies.iter().filter(|rates| rates.policy == name);
        let at = rates.flat_map(|rates| &rates.at);
        (name, at.filter_map(|at| Some((f64::from(at.slots), at.hit_rate?))).collect())
    };
    let own = report.advice.iter();
    let own = own.map(|advice| (&advice.lifetime[..], (f64::from(advice.slots), advice.hit_rate)));
    let (subject, bounds) = (report.taken.words(true), [bound(LRU), bound(OPTIMUM)]);
    draw::hit_rates(folder.join("compare-hit-rate.svg"), &subject, &bounds, own, report.enough())
}
