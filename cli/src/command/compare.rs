//! `avsg compare` computes the hit rates of what can be chosen on a recorded trace, and says what to
//! take.

mod report;
mod show;

use std::process::ExitCode;

use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::Params;
use avsg::engine::MachineChoice;
use clap::Args;

use super::output::{self, Sinks};
use super::recommended;
use super::rules::{default_slots, rules, tables};
use super::trace_options::TraceOptions;
use crate::baseline::{
    Belady, ExactLru, HitCount, LRU, NO_BUFFER, OPTIMUM, count_hits, count_operator_hits,
};
use crate::trace::Trace;
use report::{Advice, At, PolicyRates, Report};

#[derive(Args, Debug)]
#[command(
    after_help = "Hit rates are in percent after the first step, which starts with an empty buffer. A * marks the default \
                  rule of a table at that S. Neighbouring rules with the same hit rates share a line. Belady's optimum is \
                  the most that any policy can reach. The advice is that of avsg size. Examples:\n  \
                  avsg compare tests/data/nomicon-4k-k256.npz\n  \
                  avsg compare ids.npy --slots 4096,8192 --format markdown"
)]
pub struct Options {
    #[command(flatten)]
    trace: TraceOptions,
    /// S, the slots per request and layer; multiples of 64 up to 65536, at least N_q * K; the paper's table has
    /// powers of two up to 32768 [default: the three smallest powers of two]
    #[arg(long, value_name = "S,..", value_delimiter = ',')]
    slots: Vec<u32>,
    #[command(flatten)]
    sinks: Sinks,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    options.sinks.check([options.trace.path()])?;
    let trace = options.trace.read()?;
    let report = measure(options, &trace)?;
    options.sinks.write(&report, show::page, show::chart)?;
    Ok(ExitCode::SUCCESS)
}

fn measure(options: &Options, trace: &Trace) -> Result<Report> {
    let mut slots = options.slots.clone();
    if slots.is_empty() {
        slots = default_slots(trace.tokens * trace.k);
    }
    slots.sort_unstable();
    slots.dedup();
    let mut policies: Vec<PolicyRates> = Vec::new();
    let mut add = |policy: String, options: Option<String>, slots, count: HitCount, default| {
        let misses = count.misses() as f64 / (trace.steps - 1) as f64;
        let hit_rate = count.percent();
        let misses_per_step = hit_rate.map(|_| misses);
        let at = At { slots, hit_rate, misses_per_step, default };
        match policies.iter_mut().find(|other| other.policy == policy) {
            Some(other) => other.at.push(at),
            None => policies.push(PolicyRates { policy, options, at: vec![at] }),
        }
    };
    let mut advice = Vec::new();
    let bar = output::progress(slots.len(), "compare");
    for &slots in &slots {
        let tables = tables(trace.k, trace.tokens, slots)?;
        let lru = count_hits(trace, &mut ExactLru::new(slots as usize)?);
        let nothing = HitCount { hits: 0, first_hits: 0, ..lru };
        add(NO_BUFFER.to_owned(), None, slots, nothing, false);
        add(LRU.to_owned(), None, slots, lru, false);
        for (name, default) in tables {
            let machine = Machine::find(MachineChoice::Auto)?;
            let table = if name == "paper" { "--table paper " } else { "" };
            for lifetime in rules(&default) {
                let params = Params { lifetime, ..default };
                let count = count_operator_hits(trace, &params, machine)?;
                let options = format!("{table}--lifetime {lifetime}");
                let is_default = lifetime == default.lifetime;
                add(format!("{name} {lifetime}"), Some(options), slots, count, is_default);
            }
            if name == "wide" {
                let rules = recommended::on_trace(trace, default, machine)?;
                advice.extend(Advice::of(default, &rules, trace.steps));
            }
        }
        let optimum = count_hits(trace, &mut Belady::new(trace, slots as usize)?);
        add(OPTIMUM.to_owned(), None, slots, optimum, false);
        bar.inc(1);
    }
    bar.finish_and_clear();
    // The optimum of the first S was added before the rules that only a later S has.
    policies.sort_by_key(|rates| rates.policy == OPTIMUM);
    Ok(Report {
        trace: options.trace.name(),
        steps: trace.steps,
        tokens: trace.tokens,
        k: trace.k,
        repeats: trace.repeats(),
        advice,
        slots,
        policies,
    })
}
