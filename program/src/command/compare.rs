//! `avsg compare` computes the hit rates of what can be chosen on recorded traces, and says what to take.

use std::path::{Path, PathBuf};

use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::Params;
use avsg::engine::MachineChoice;
use clap::Args;
use serde::Serialize;

use super::engine_options::TableOptions;
use super::lifetimes::{default_slots, recommended, rules};
use super::output::{self, Cell, Page, Sinks, Table};
use super::trace_options::TraceOptions;
use super::traces::{Taken, Traces, lru_hits, operator_hits, policy_hits};
use crate::baseline::{Belady, HitCount, LRU, NO_BUFFER, NO_REPEATS, OPTIMUM};
use crate::draw;

#[derive(Args, Debug)]
#[command(
    after_help = "Hit rates are in percent after the first step, which starts with an empty buffer. Neighbouring rules \
                  with the same hit rates share a line. Belady's optimum is the most that any policy can reach. The \
                  rule to take is that of avsg size. Examples:\n  \
                  avsg compare tests/data/nomicon-4k-k256.npz\n  \
                  avsg compare ids.npy --slots 4096,8192"
)]
pub struct Options {
    #[command(flatten)]
    trace: TraceOptions,
    /// S, the slots per request and layer; multiples of 64 up to 65536, at least N_q * K [default: the three
    /// smallest powers of two]
    #[arg(long, value_name = "S,..", value_delimiter = ',')]
    slots: Vec<u32>,
    #[command(flatten)]
    sinks: Sinks,
}

pub fn run(options: &Options) -> Result<()> {
    options.sinks.check(options.trace.paths())?;
    let traces = Traces::new(options.trace.read_all()?)?;
    let report = measure(options, &traces)?;
    options.sinks.write(&report, page, chart)
}

fn measure(options: &Options, traces: &Traces) -> Result<Report> {
    let (tokens, k) = (traces.first().tokens, traces.first().k);
    let default = || default_slots(tokens * k);
    let mut slots = if options.slots.is_empty() { default() } else { options.slots.clone() };
    slots.sort_unstable();
    slots.dedup();
    let mut policies: Vec<PolicyRates> = Vec::new();
    let mut add = |policy: &str, slots, count: HitCount, most: &HitCount| {
        count.check(policy, most, OPTIMUM)?;
        let at = At::of(slots, &count, traces);
        match policies.iter_mut().find(|other| other.policy == policy) {
            Some(other) => other.at.push(at),
            None => policies.push(PolicyRates { policy: policy.to_owned(), at: vec![at] }),
        }
        anyhow::Ok(())
    };
    let [every, once] = traces.gathers();
    let machine = Machine::find(MachineChoice::Auto)?;
    let mut advice = Vec::new();
    let bar = output::progress(slots.len(), "compare");
    for &slots in &slots {
        let default = TableOptions::default().params(k, tokens, slots, 0)?;
        let lru = lru_hits(traces, slots as usize)?;
        let optimum = policy_hits(traces, |trace| Ok(Belady::new(trace, slots as usize)?))?;
        add(NO_BUFFER, slots, every, &optimum)?;
        add(NO_REPEATS, slots, once, &optimum)?;
        add(LRU, slots, lru, &optimum)?;
        let mut measured = Vec::new();
        for lifetime in rules(&default) {
            let params = Params { lifetime, ..default };
            let count = operator_hits(traces, &params, machine)?.into_iter().sum();
            measured.push((lifetime, count));
            add(&lifetime.to_string(), slots, count, &optimum)?;
        }
        let of = |params: &Params| {
            let found = measured.iter().find(|(lifetime, _)| *lifetime == params.lifetime);
            Ok(found.map_or_else(HitCount::default, |&(_, count)| count))
        };
        let [(best, hits), _] = recommended(default, traces.counted(), of, HitCount::misses)?;
        let advised =
            Advice { lifetime: best.lifetime.to_string(), at: At::of(slots, &hits, traces) };
        advice.extend(hits.percent().map(|_| advised));
        add(OPTIMUM, slots, optimum, &optimum)?;
        bar.inc(1);
    }
    // The optimum of the first S was added before the rules that only a later S has.
    policies.sort_by_key(|rates| rates.policy == OPTIMUM);
    Ok(Report { taken: Taken::new(&options.trace, traces), advice, slots, policies })
}

/// The hit rates of all policies.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    taken: Taken,
    slots: Vec<u32>,
    policies: Vec<PolicyRates>,
    /// What to take at each S; nothing if no step after the first selects an id.
    advice: Vec<Advice>,
}

/// One policy at each S of the report.
#[derive(Serialize)]
struct PolicyRates {
    policy: String,
    at: Vec<At>,
}

#[derive(Serialize)]
struct At {
    slots: u32,
    /// In percent after the first step; null if no later step selects an id.
    hit_rate: Option<f64>,
    /// Mean misses of a step after the first.
    misses_per_step: Option<f64>,
}

/// The rule to take at one S, where a step after the first selects an id.
#[derive(Serialize)]
struct Advice {
    /// The lifetime rule.
    lifetime: String,
    #[serde(flatten)]
    at: At,
}

impl At {
    fn of(slots: u32, count: &HitCount, traces: &Traces) -> Self {
        let misses_per_step = traces.misses_per_step(count);
        Self { slots, hit_rate: count.percent(), misses_per_step }
    }
}

impl Report {
    /// Returns the mean misses of a step after the first of a policy at the first S.
    fn misses(&self, policy: &str) -> Option<f64> {
        self.policies.iter().find(|rates| rates.policy == policy)?.at.first()?.misses_per_step
    }

    /// Returns the least S from which on every larger one copies as many rows with the advised rule;
    /// `None` if that is the largest.
    fn enough(&self) -> Option<u32> {
        let last = self.advice.last()?;
        let mut advice = self.advice.iter();
        let least = advice.find(|advice| advice.at.misses_per_step <= last.at.misses_per_step)?;
        (least.at.slots < last.at.slots).then_some(least.at.slots)
    }
}

impl PolicyRates {
    /// Returns the kind of the rule, and the rates: what neighbours on a line share.
    fn key(&self) -> (&str, Vec<(u32, Option<u64>)>) {
        let kind = self.policy.split(':').next().unwrap_or_default();
        let rates = self.at.iter().map(|at| (at.slots, at.hit_rate.map(f64::to_bits)));
        (kind, rates.collect())
    }
}

/// Returns the page: the rule to take, one row per policy and one column per S, and what was assumed.
fn page(report: &Report) -> Page {
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
            let advice = report.advice.iter().find(|advice| advice.at.slots == slots);
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
        let ends = |of: &dyn Fn(&At) -> String| match [&first.at, &last.at].map(of) {
            [one, other] if one == other => one,
            [one, other] => format!("{one} to {other}"),
        };
        format!(
            "{} at S = {}: {} % of hits, a step copies {} rows",
            first.lifetime,
            ends(&|at| at.slots.to_string()),
            ends(&|at| format!("{:.2}", at.hit_rate.unwrap_or_default())),
            ends(&|at| format!("{:.1}", at.misses_per_step.unwrap_or_default()))
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
fn chart(folder: &Path, report: &Report) -> Result<PathBuf> {
    let point = |at: &At| Some((f64::from(at.slots), at.hit_rate?));
    let bound = |name: &'static str| {
        let rates = report.policies.iter().filter(|rates| rates.policy == name);
        (name, rates.flat_map(|rates| &rates.at).filter_map(point).collect())
    };
    let own = report.advice.iter();
    let own = own.filter_map(|advice| Some((&advice.lifetime[..], point(&advice.at)?)));
    let (subject, bounds) = (report.taken.words(true), [bound(LRU), bound(OPTIMUM)]);
    draw::hit_rates(folder.join("compare-hit-rate.svg"), &subject, &bounds, own, report.enough())
}
