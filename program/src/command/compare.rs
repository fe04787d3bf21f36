//! `avsg compare` computes the hit rates of what can be chosen on recorded traces, and says what to take.

use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::Params;
use avsg::engine::MachineChoice;
use clap::Args;
use serde::Serialize;

use super::engine_options::TableOptions;
use super::lifetimes::{default_slots, recommended, rules};
use super::output::{self, OutputOptions, Page, Table};
use super::trace_options::TraceOptions;
use super::traces::{Taken, Traces, operator_hits, policy_hits};
use crate::baseline::{Belady, ExactLru, HitCount, LRU, NO_BUFFER, NO_REPEATS, OPTIMUM};

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
    output: OutputOptions,
}

pub fn run(options: &Options) -> Result<()> {
    options.output.check(options.trace.paths())?;
    let traces = Traces::new(&options.trace)?;
    let report = measure(options, &traces)?;
    options.output.write(&report, || page(&report))
}

fn measure(options: &Options, traces: &Traces) -> Result<Report> {
    let (tokens, k) = (traces.first().tokens, traces.first().k);
    let default = || default_slots(tokens * k);
    let mut slots = if options.slots.is_empty() { default() } else { options.slots.clone() };
    slots.sort_unstable();
    slots.dedup();
    let [every, once] = traces.gathers();
    let machine = Machine::find(MachineChoice::Auto)?;
    let (mut policies, mut advice) = (Vec::<PolicyRates>::new(), Vec::new());
    let bar = output::progress(slots.len(), "compare");
    for &slots in &slots {
        let default = TableOptions::default().params(k, tokens, slots, 0)?;
        let lru = policy_hits(traces, |_| Ok(ExactLru::new(slots as usize)?))?;
        let optimum = policy_hits(traces, |trace| Ok(Belady::new(trace, slots as usize)?))?;
        let mut counts: Vec<(String, HitCount)> =
            [(NO_BUFFER, every), (NO_REPEATS, once), (LRU, lru)]
                .map(|(p, c)| (p.to_owned(), c))
                .into();
        for lifetime in rules() {
            let hits = operator_hits(traces, &Params { lifetime, ..default }, machine)?;
            counts.push((lifetime.to_string(), hits.into_iter().sum()));
        }
        let of = |params: &Params| {
            let found = counts.iter().filter(|(rule, _)| *rule == params.lifetime.to_string());
            Ok(found.map(|&(_, count)| count).collect())
        };
        let (best, hits) = recommended(default, traces.counted(), of)?;
        counts.push((OPTIMUM.to_owned(), optimum));
        let at = |count: &HitCount| {
            let misses_per_step = traces.misses_per_step(count);
            At { slots, hit_rate: count.percent(), misses_per_step }
        };
        let advised = Advice { lifetime: best.lifetime.to_string(), at: at(&hits[0]) };
        advice.extend(advised.at.hit_rate.map(|_| advised));
        for (place, (policy, count)) in counts.into_iter().enumerate() {
            count.check(&policy, &optimum, OPTIMUM)?;
            if place == policies.len() {
                policies.push(PolicyRates { policy, at: Vec::new() });
            }
            policies[place].at.push(at(&count));
        }
        bar.inc(1);
    }
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

impl PolicyRates {
    /// Returns the kind of the rule, and the rates: what neighbours on a line share.
    fn key(&self) -> (Option<&str>, Vec<Option<f64>>) {
        (self.policy.split(':').next(), self.at.iter().map(|at| at.hit_rate).collect())
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
        let cell = |(at, rates): (usize, &At)| {
            let taken = report.advice.get(at).map(|advice| &advice.lifetime);
            let is_taken = equal.iter().any(|rates| Some(&rates.policy) == taken);
            let mark = if is_taken { " *" } else { "" };
            rates.hit_rate.map(|rate| format!("{rate:.2}{mark}")).unwrap_or_default()
        };
        let name = format!("{}{end}", equal[0].policy);
        table.add_row(std::iter::once(name).chain(equal[0].at.iter().enumerate().map(cell)));
    }
    page.table(&table);
    page.text("hits in percent after the first step; * is the rule to take");
    page.text(format!("assumed   {}", report.taken.words()));
    page
}

/// Says which rule to take at each S and what a step then copies.
fn verdict(report: &Report) -> String {
    if report.advice.is_empty() {
        return "No step after the first selects an id, so there is no hit rate.".to_owned();
    }
    let parts = report.advice.iter().map(|Advice { lifetime, at }| {
        let [rate, misses] = [at.hit_rate, at.misses_per_step].map(Option::unwrap_or_default);
        let slots = at.slots;
        format!("{lifetime} at S = {slots}: {rate:.2} % of hits, a step copies {misses:.1} rows")
    });
    let parts = parts.collect::<Vec<_>>().join("; ");
    // The first policies are the gathers without a buffer.
    let [every, once] =
        [0, 1].map(|gather| report.policies[gather].at[0].misses_per_step.unwrap_or_default());
    format!(
        "take {parts}; a gather of every selected row copies {every:.1}, one without repeats {once:.1}"
    )
}
