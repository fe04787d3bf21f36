//! `avsg compare` computes the hit rates of what can be chosen on recorded traces, and says what to take.

use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::{Lifetime, MAX_PAPER_SLOTS, Params};
use avsg::engine::MachineChoice;
use clap::Args;
use serde_json::{Value, json, to_value};

use super::engine_options::TableOptions;
use super::lifetimes::{least_slots, recommended};
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
    let traces = &Traces::new(&options.trace)?;
    let (tokens, k) = (traces.first().tokens, traces.first().k);
    let mut slots = options.slots.clone();
    if slots.is_empty() {
        let least = least_slots(tokens * k);
        let smallest = [1, 2, 4].map(|times| times * least);
        // A least S above the limit is kept, which the library refuses.
        let fits = |slots: &u32| *slots == least || *slots <= MAX_PAPER_SLOTS;
        slots.extend(smallest.into_iter().filter(fits));
    }
    slots.sort_unstable();
    slots.dedup();
    let [every, once] = traces.gathers();
    let machine = Machine::find(MachineChoice::Auto)?;
    let constants = [0, 1, 2, 4, 8, 16, 32, 64, 127].map(Lifetime::Constant);
    // Each policy with its hits at each S, and what to take at each S: nothing if no step after the first selects an id.
    let (mut policies, mut advice) = (Vec::<Hits>::new(), Vec::new());
    let bar = output::progress(slots.len(), "compare");
    for &slots in &slots {
        let default = TableOptions::default().params(k, tokens, slots, 0)?;
        let lru = policy_hits(traces, |_| Ok(ExactLru::new(slots as usize)?))?;
        let optimum = policy_hits(traces, |trace| Ok(Belady::new(trace, slots as usize)?))?;
        let mut counts: Vec<(String, HitCount)> =
            [(NO_BUFFER, every), (NO_REPEATS, once), (LRU, lru)]
                .map(|(p, c)| (p.to_owned(), c))
                .into();
        for lifetime in constants.into_iter().chain([Lifetime::Learned]) {
            let hits = operator_hits(traces, &Params { lifetime, ..default }, machine)?;
            counts.push((lifetime.to_string(), hits.into_iter().sum()));
        }
        let of = |params: &Params| {
            let found = counts.iter().filter(|(rule, _)| *rule == params.lifetime.to_string());
            Ok(found.map(|&(_, count)| count).collect())
        };
        let (best, hits) = recommended(default, traces.counted(), of)?;
        advice.extend(hits[0].percent().map(|_| (best.lifetime.to_string(), (slots, hits[0]))));
        counts.push((OPTIMUM.to_owned(), optimum));
        for (place, (policy, count)) in counts.into_iter().enumerate() {
            if place == policies.len() {
                policies.push((policy, Vec::new()));
            }
            policies[place].1.push((slots, count));
        }
        bar.inc(1);
    }
    drop(bar);
    // Rates are in percent after the first step, and misses are means of a step after it; null if no later step selects
    // an id.
    let at = |&(slots, count): &(u32, HitCount)| {
        let misses = traces.misses_per_step(&count);
        json!({"slots": slots, "hit_rate": count.percent(), "misses_per_step": misses})
    };
    let of_policy = |(policy, hits): &Hits| json!({"policy": policy, "at": hits.iter().map(at).collect::<Vec<_>>()});
    let advised = |(lifetime, hits): &(String, (u32, HitCount))| {
        let mut advised = at(hits);
        advised["lifetime"] = lifetime.as_str().into();
        advised
    };
    let taken = Taken::new(&options.trace, traces);
    let mut report = to_value(&taken)?;
    report["slots"] = slots.into();
    report["policies"] = policies.iter().map(of_policy).collect();
    report["advice"] = advice.iter().map(advised).collect();
    let page = || {
        let mut page = Page::default();
        taken.warning.iter().for_each(|warning| page.text(warning));
        page.text(verdict(&report));
        page.table(&table(&policies, &advice));
        page.text("hits in percent after the first step; * is the rule to take");
        page.text(format!("assumed   {}", taken.words()));
        page
    };
    options.output.write(&report, page)
}

/// A policy, and its hits at each S.
type Hits = (String, Vec<(u32, HitCount)>);

/// Returns the table: one row per policy and one column per S.
fn table(policies: &[Hits], advice: &[(String, (u32, HitCount))]) -> Table {
    let columns = policies[0].1.iter().map(|(slots, _)| format!("S = {slots}, %"));
    let mut table = Table::new(std::iter::once("policy".to_owned()).chain(columns));
    // The kind of the rule, and the rates: what neighbours on a line share.
    let key = |(policy, hits): &Hits| {
        let rates = hits.iter().map(|(_, count)| count.percent()).collect::<Vec<_>>();
        (policy.split(':').next().map(str::to_owned), rates)
    };
    for equal in policies.chunk_by(|a, b| key(a) == key(b)) {
        let last = equal[equal.len() - 1].0.split(':').nth(1).unwrap_or_default();
        let end = if equal.len() > 1 { format!(" to {last}") } else { String::new() };
        let cell = |(at, (_, count)): (usize, &(u32, HitCount))| {
            let taken = advice.get(at).map(|(lifetime, _)| lifetime);
            let mark =
                if equal.iter().any(|(policy, _)| Some(policy) == taken) { " *" } else { "" };
            count.percent().map(|rate| format!("{rate:.2}{mark}")).unwrap_or_default()
        };
        let name = format!("{}{end}", equal[0].0);
        table.add_row(std::iter::once(name).chain(equal[0].1.iter().enumerate().map(cell)));
    }
    table
}

/// Says which rule to take at each S of a report, and what a step then copies.
fn verdict(report: &Value) -> String {
    let advice = report["advice"].as_array().map_or(&[][..], Vec::as_slice);
    if advice.is_empty() {
        return "No step after the first selects an id, so there is no hit rate.".to_owned();
    }
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let parts = advice.iter().map(|at| {
        let [rate, misses] = ["hit_rate", "misses_per_step"].map(|key| number(&at[key]));
        let (lifetime, slots) = (at["lifetime"].as_str().unwrap_or_default(), &at["slots"]);
        format!("{lifetime} at S = {slots}: {rate:.2} % of hits, a step copies {misses:.1} rows")
    });
    let parts = parts.collect::<Vec<_>>().join("; ");
    // The first policies are the gathers without a buffer.
    let [every, once] =
        [0, 1].map(|gather| number(&report["policies"][gather]["at"][0]["misses_per_step"]));
    format!(
        "take {parts}; a gather of every selected row copies {every:.1}, one without repeats {once:.1}"
    )
}
