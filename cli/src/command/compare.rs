//! `avsg compare` computes the hit rates of all policies on a recorded trace.

mod policies;
mod report;
mod show;

use std::process::ExitCode;

use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::{MAX_SLOTS, MIN_SLOTS, Params};
use avsg::engine::MachineChoice;
use clap::Args;

use super::output::{self, Sinks};
use super::rules::{rules, tables};
use super::trace_options::TraceOptions;
use crate::baseline::{HitCount, count_hits, count_operator_hits};
use crate::trace::Trace;
use report::{At, PolicyRates, Report};

/// Options of `avsg compare`.
#[derive(Args, Debug)]
#[command(
    after_help = "Hit rates are in percent after the first step, which starts with an empty buffer. A * marks the default\n\
                  rule of a table at that S. Neighbouring rules with the same hit rates share a line. Belady's optimum is\n\
                  the most that any policy can reach. Two policies do not keep the rows of a whole step, as the operator\n\
                  must: previous step holds K rows at any S and compares each token with the token before it, and set\n\
                  FIFO may replace a row that the running step selects. Examples:\n  \
                  avsg compare tests/data/nomicon-4k-k256.npz\n  \
                  avsg compare ids.npy --slots 4096,8192 --format markdown"
)]
pub struct Options {
    #[command(flatten)]
    trace: TraceOptions,
    /// S, the slots per request and layer; powers of two from 64 to 32768, at least N_q * K [default:
    /// the three smallest]
    #[arg(long, value_name = "S,..", value_delimiter = ',')]
    slots: Vec<u32>,
    #[command(flatten)]
    sinks: Sinks,
}

/// Computes the hit rates and prints them.
pub fn run(options: &Options) -> Result<ExitCode> {
    options.sinks.check([options.trace.path()])?;
    let trace = options.trace.read()?;
    let report = measure(options, &trace)?;
    options.sinks.write(&report, show::page, show::chart)?;
    Ok(ExitCode::SUCCESS)
}

fn measure(options: &Options, trace: &Trace) -> Result<Report> {
    let slots = match options.slots.as_slice() {
        [] => default_slots(trace),
        chosen => {
            let mut chosen = chosen.to_vec();
            chosen.sort_unstable();
            chosen.dedup();
            chosen
        }
    };
    let mut policies: Vec<PolicyRates> = Vec::new();
    let mut add = |policy: String, slots: u32, count: HitCount, default: bool| {
        let misses = count.misses() as f64 / (trace.steps - 1) as f64;
        let hit_rate = count.percent();
        let misses_per_step = hit_rate.map(|_| misses);
        let at = At { slots, hit_rate, misses_per_step, default };
        match policies.iter_mut().find(|other| other.policy == policy) {
            Some(other) => other.at.push(at),
            None => policies.push(PolicyRates { policy, at: vec![at] }),
        }
    };
    let bar = output::progress(slots.len(), "compare");
    for &slots in &slots {
        let tables = tables(trace.k, trace.tokens, slots)?;
        let (optimum, others) = policies::at(trace, slots as usize)?;
        for (name, mut policy) in others {
            add(name.to_owned(), slots, count_hits(trace, policy.as_mut()), false);
        }
        for (name, default) in tables {
            let machine = Machine::find(MachineChoice::Auto)?;
            for (rule, value, lifetime) in rules(&default) {
                let params = Params { lifetime, ..default };
                let count = count_operator_hits(trace, &params, machine)?;
                let is_default = lifetime == default.lifetime;
                add(format!("{name} {rule}:{value}"), slots, count, is_default);
            }
        }
        let (name, mut policy) = optimum;
        add(name.to_owned(), slots, count_hits(trace, policy.as_mut()), false);
        bar.inc(1);
    }
    bar.finish_and_clear();
    // The optimum of the first S was added before the rules that only a later S has.
    policies.sort_by_key(|rates| rates.policy == policies::OPTIMUM);
    Ok(Report {
        trace: options.trace.name(),
        steps: trace.steps,
        tokens: trace.tokens,
        k: trace.k,
        repeats: trace.repeats(),
        slots,
        policies,
    })
}

/// Returns the three smallest S that the operator accepts for the trace, or fewer if the third is
/// above its limit.
fn default_slots(trace: &Trace) -> Vec<u32> {
    let least = (trace.tokens * trace.k).max(MIN_SLOTS as usize).next_power_of_two();
    let least = u32::try_from(least).unwrap_or(u32::MAX);
    let more = [2, 4].map(|times| least.saturating_mul(times));
    // A least S above the limit is refused later, with the limit.
    std::iter::once(least).chain(more.into_iter().filter(|&slots| slots <= MAX_SLOTS)).collect()
}
