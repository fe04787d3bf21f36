//! `avsg-research contenders` computes the hit rates of policies that AVSG does not have, beside those
//! that bound it.

pub mod hisparse;
mod second_chance;
mod set_fifo;
#[cfg(test)]
mod tests;

use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::engine::MachineChoice;
use avsg_cli::baseline::{
    Belady, ExactLru, LRU, MatcherPolicy, OPTIMUM, Policy, PreviousStep, count_hits,
    count_operator_hits,
};
use avsg_cli::command::output::{self, Cell, OutputOptions, Page, Table};
use avsg_cli::command::rules::{default_slots, tables};
use avsg_cli::command::trace_options::TraceOptions;
use avsg_cli::trace::Trace;
use clap::Args;
use serde::Serialize;

use hisparse::HiSparse;
use second_chance::SecondChance;
use set_fifo::SetFifo;

/// Options of `avsg-research contenders`.
#[derive(Args, Debug)]
#[command(
    after_help = "Hit rates are in percent after the first step, which starts with an empty buffer. Two policies do not \
                  keep the rows of a whole step, as the operator must: previous step holds K rows at any S and compares \
                  each token with the token before it, and set FIFO may replace a row that the running step selects."
)]
pub struct Options {
    #[command(flatten)]
    trace: TraceOptions,
    /// S, the slots per request and layer; multiples of 64 up to 65536, at least N_q * K [default:
    /// the three smallest]
    #[arg(long, value_name = "S,..", value_delimiter = ',')]
    slots: Vec<u32>,
    #[command(flatten)]
    output: OutputOptions,
}

/// Hit rates in percent after the first step; null if no later step selects an id.
#[derive(Serialize)]
pub struct Report {
    trace: String,
    slots: Vec<u32>,
    policies: Vec<Rates>,
}

#[derive(Serialize)]
struct Rates {
    policy: &'static str,
    /// One for each S.
    hit_rates: Vec<Option<f64>>,
}

/// Computes the hit rates and prints them.
pub fn run(options: &Options) -> Result<()> {
    options.output.check([options.trace.path()], [])?;
    let report = compute(options)?;
    options.output.write(&report, || page(&report))
}

/// Computes the hit rates.
pub fn compute(options: &Options) -> Result<Report> {
    let trace = options.trace.read()?;
    let mut slots = options.slots.clone();
    if slots.is_empty() {
        slots = default_slots(trace.tokens * trace.k);
    }
    let mut policies: Vec<Rates> = Vec::new();
    let bar = output::progress(slots.len(), "contenders");
    for &slots in &slots {
        let tables = tables(trace.k, trace.tokens, slots)?;
        let wide = tables[tables.len() - 1].1;
        let machine = Machine::find(MachineChoice::Auto)?;
        let mut rates: Vec<_> = policies_at(&trace, slots as usize)?
            .into_iter()
            .map(|(name, mut policy)| (name, count_hits(&trace, policy.as_mut()).percent()))
            .collect();
        let own = count_operator_hits(&trace, &wide, machine)?.percent();
        rates.insert(rates.len() - 1, ("wide, default rule", own));
        for (at, (policy, rate)) in rates.into_iter().enumerate() {
            match policies.get_mut(at) {
                Some(rates) => rates.hit_rates.push(rate),
                None => policies.push(Rates { policy, hit_rates: vec![rate] }),
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(Report { trace: options.trace.name(), slots, policies })
}

/// Returns the policies, each with a buffer of `slots` rows; the last one is the optimum.
fn policies_at(trace: &Trace, slots: usize) -> Result<Vec<(&'static str, Box<dyn Policy>)>> {
    Ok(vec![
        ("previous step, K slots", Box::new(MatcherPolicy::new(PreviousStep::new(trace.k)?))),
        ("set FIFO, 16 ways", Box::new(SetFifo::new(slots))),
        ("CLOCK", Box::new(SecondChance::clock(slots))),
        ("SIEVE", Box::new(SecondChance::sieve(slots))),
        ("batch LRU of HiSparse", Box::new(HiSparse::new(slots))),
        (LRU, Box::new(ExactLru::new(slots)?)),
        (OPTIMUM, Box::new(Belady::new(trace, slots)?)),
    ])
}

fn page(report: &Report) -> Page {
    let columns = report.slots.iter().map(|slots| format!("S = {slots}, %"));
    let mut table = Table::new(std::iter::once("policy".to_owned()).chain(columns));
    for rates in &report.policies {
        let cell = |rate: &Option<f64>| rate.map_or_else(Cell::none, |rate| Cell::number(rate, 2));
        table.add_row(std::iter::once(rates.policy.into()).chain(rates.hit_rates.iter().map(cell)));
    }
    let mut page = Page::default();
    page.text(format!("hit rate in percent after the first step; {}", report.trace));
    page.table(table);
    page
}
