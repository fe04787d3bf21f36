//! The hit rates of `avsg compare` as a page and as a chart.

use std::path::Path;

use anyhow::Result;

use super::report::{Advice, PolicyRates, Report};
use crate::baseline::{LRU, NO_BUFFER, OPTIMUM};
use crate::command::hit_rates::{self, Subject};
use crate::command::output::{Cell, Page, Table, count};
use crate::draw::{Series, Shape};

/// Returns the page: one row per policy and one column per S.
pub fn page(report: &Report) -> Page {
    let mut page = Page::default();
    let Report { trace, steps, tokens, k, .. } = report;
    let steps = count(*steps, "step");
    page.text(format!(
        "hit rate in percent after the first step; {trace}, {steps}, N_q {tokens}, K {k}; * is a default"
    ));
    let columns = report.slots.iter().map(|slots| format!("S = {slots}, %"));
    let mut table = Table::new(std::iter::once("policy".to_owned()).chain(columns));
    for equal in report.policies.chunk_by(|a, b| a.key() == b.key()) {
        let last = equal[equal.len() - 1].policy.split(':').nth(1).unwrap_or_default();
        let end = if equal.len() > 1 { format!(" to {last}") } else { String::new() };
        let cell = |&slots: &u32| match PolicyRates::cell(equal, slots) {
            Some((rate, default)) => {
                Cell::shown(rate, format!("{rate:.2}{}", if default { " *" } else { "" }))
            }
            None => Cell::none(),
        };
        let name = Cell::from(format!("{}{end}", equal[0].policy));
        table.add_row(std::iter::once(name).chain(report.slots.iter().map(cell)));
    }
    page.table(table);
    if report.policies.iter().flat_map(|rates| &rates.at).all(|at| at.hit_rate.is_none()) {
        page.text("No step after the first selects an id, so there is no hit rate.");
    }
    report.advice.iter().for_each(|advice| page.text(sentence(report, advice)));
    if let Some(least) = report.enough() {
        page.text(format!("More slots than {least} copy no fewer rows."));
    }
    page
}

/// Says what to take at one S, and what the others copy.
fn sentence(report: &Report, advice: &Advice) -> String {
    let Advice { slots, options, misses_per_step, default_misses_per_step, .. } = advice;
    let misses = |name: &str| {
        let rates = report.policies.iter().find(|rates| rates.policy == name);
        rates.and_then(|rates| rates.at(*slots)?.misses_per_step).unwrap_or_default()
    };
    let choice = match advice.default {
        true => format!("take the default, {options}"),
        false => format!("take {options}"),
    };
    let default = match advice.default {
        true => String::new(),
        false => format!("the default {default_misses_per_step:.1}, "),
    };
    format!(
        "S = {slots}: {choice}. A step of a layer then copies {misses_per_step:.1} rows ({default}exact LRU {:.1}, the optimum \
         {:.1}, no buffer {:.1}).",
        misses(LRU),
        misses(OPTIMUM),
        misses(NO_BUFFER)
    )
}

/// Draws the hit rates at each S: the optimum, exact LRU, and both tables with their default rules.
pub fn chart(folder: &Path, report: &Report) -> Result<()> {
    let series = |name: String, shown: &dyn Fn(&PolicyRates, bool) -> bool| {
        let at =
            report.policies.iter().flat_map(|rates| rates.at.iter().map(move |at| (rates, at)));
        let at = at.filter(|(rates, at)| shown(rates, at.default));
        let mut points: Vec<_> =
            at.filter_map(|(_, at)| Some((f64::from(at.slots), at.hit_rate?))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Series { name, shape: Shape::Marks, points }
    };
    let bound = |name: &str| series(name.to_owned(), &|rates, _| rates.policy == name);
    let table = |name: &str| {
        let is_shown = |rates: &PolicyRates, default| default && rates.policy.starts_with(name);
        series(format!("{name}, default rule"), &is_shown)
    };
    let &Report { ref trace, steps, tokens, k, .. } = report;
    let subject = Subject { trace, steps, tokens, k };
    let all = [bound(OPTIMUM), bound(LRU), table("wide"), table("paper")];
    hit_rates::chart(&folder.join("compare-hit-rate.svg"), &subject, &all)
}
