//! `avsg compare` computes the hit rates of what can be chosen on recorded traces, and says what to take.

mod report;
mod show;

use std::process::ExitCode;

use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::Params;
use avsg::engine::MachineChoice;
use clap::Args;

use super::geometry::TableOptions;
use super::output::{self, Sinks};
use super::recommended::recommended;
use super::rules::{default_slots, rules};
use super::trace_options::TraceOptions;
use super::traces::{Taken, Traces, lru_hits, operator_hits, policy_hits};
use crate::baseline::{Belady, HitCount, LRU, NO_BUFFER, NO_REPEATS, OPTIMUM};
use report::{Advice, At, PolicyRates, Report};

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

pub fn run(options: &Options) -> Result<ExitCode> {
    options.sinks.check(options.trace.paths())?;
    let traces = Traces::new(options.trace.read_all()?)?;
    let report = measure(options, &traces)?;
    options.sinks.write(&report, show::page, show::chart)?;
    Ok(ExitCode::SUCCESS)
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
        let hit_rate = count.percent();
        let at = At { slots, hit_rate, misses_per_step: traces.misses_per_step(&count) };
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
        advice.extend(Advice::of(best, &hits, traces));
        add(OPTIMUM, slots, optimum, &optimum)?;
        bar.inc(1);
    }
    // The optimum of the first S was added before the rules that only a later S has.
    policies.sort_by_key(|rates| rates.policy == OPTIMUM);
    Ok(Report { taken: Taken::new(&options.trace, traces), advice, slots, policies })
}
