//! `avsg size` computes how many slots a recorded trace needs.

mod deployment;
mod least;
mod point;
mod report;
mod show;
mod tpot;

use std::process::ExitCode;

use anyhow::Result;
use avsg::Error;
use avsg::cpu::machine::Machine;
use avsg::device::params::{MAX_SLOTS, MIN_SLOTS};
use avsg::engine::MachineChoice;
use clap::Args;

use super::geometry::{RowOptions, TableOptions};
use super::output::{self, Sinks};
use super::trace_options::TraceOptions;
use crate::baseline::{HitCount, LruCurve, count_operator_hits};
use crate::trace::Trace;
use deployment::{Deployment, DeploymentOptions};
use least::Wanted;
use point::{Curve, Point};
use report::Report;
use tpot::ModelOptions;

/// Slots between two points of the curve.
const STRIDE: usize = 64;

/// Options of `avsg size`.
#[derive(Args, Debug)]
#[command(
    after_help = "AVSG is measured: the table runs the trace at every S that is shown, and its hit rate is that of replay.\n\
                  Exact LRU is computed for every multiple of 64 in one pass. Hit rates leave out the first step, which\n\
                  starts with an empty buffer. All layers and requests count as the one in the trace. Times per token\n\
                  are a model. Examples:\n  \
                  avsg size tests/data/nomicon-4k-k256.npz --hit-rate 95\n  \
                  avsg size ids.npy --tpot-ms 50 --step-ms 40 --link-gbs 50 --requests 8\n  \
                  avsg size ids.npy --curve --format csv > curve.csv"
)]
pub struct Options {
    #[command(flatten)]
    trace: TraceOptions,
    /// S to measure, the slots per request and layer; powers of two from 64 to 32768, at least N_q * K
    /// [default: every such S up to the first that has all hits of exact LRU]
    #[arg(long, value_name = "S,..", value_delimiter = ',')]
    slots: Vec<u32>,
    #[command(flatten)]
    table: TableOptions,
    #[command(flatten)]
    rows: RowOptions,
    #[command(flatten)]
    deployment: DeploymentOptions,
    /// Find the least S with this hit rate, 0 to 100
    #[arg(long, value_name = "PERCENT")]
    hit_rate: Option<f64>,
    #[command(flatten)]
    model: ModelOptions,
    /// Show every multiple of 64 with the hit rate of exact LRU, not only the measured S
    #[arg(long)]
    curve: bool,
    #[command(flatten)]
    sinks: Sinks,
}

/// Computes the sizes and prints them.
pub fn run(options: &Options) -> Result<ExitCode> {
    options.sinks.check([options.trace.path()])?;
    if let Some(rate) = options.hit_rate.filter(|rate| !(0.0..=100.0).contains(rate)) {
        let limit = "it must be 0 to 100 percent";
        return Err(Error::invalid("--hit-rate", rate, limit, "pass 95 for 95 %").into());
    }
    let trace = options.trace.read()?;
    let report = measure(options, &trace)?;
    let page = |report: &Report| show::page(report, options.curve);
    options.sinks.write(&report, page, show::chart)?;
    Ok(ExitCode::SUCCESS)
}

fn measure(options: &Options, trace: &Trace) -> Result<Report> {
    let least = least_slots(trace)?;
    let lru = LruCurve::of(trace);
    let format = options.rows.format()?;
    let deployment = Deployment::new(&options.deployment, trace, format)?;
    let model = options.model.model(trace)?;
    let later_steps = trace.steps - 1;
    let per_step = |misses: u64| misses as f64 / later_steps as f64;
    let nothing = lru.count(least);
    let selected = per_step(nothing.selected - nothing.first_selected);

    let slots = match options.slots.as_slice() {
        [] => tested(least, lru.largest_distance()),
        chosen => chosen.to_vec(),
    };
    let bar = output::progress(slots.len(), "size");
    let mut points = Vec::new();
    for slots in slots {
        let params = options.table.params(trace.k, trace.tokens, slots, 0)?;
        let machine = Machine::find(MachineChoice::Auto)?;
        let count = count_operator_hits(trace, &params, machine)?;
        let rate = |count: &HitCount| count.percent();
        let misses = rate(&count).map(|_| per_step(count.misses()));
        let bytes = misses.map(|misses| deployment.bytes(misses));
        points.push(Point {
            slots,
            rule: options.table.rule(&params),
            hit_rate: rate(&count),
            lru_hit_rate: rate(&lru.count(slots as usize)),
            misses_per_step: misses,
            bytes_per_step: bytes,
            device_bytes: deployment.device_bytes(params)?,
            tpot_ms: model.as_ref().zip(bytes).map(|(model, bytes)| model.tpot_ms(bytes)),
        });
        bar.inc(1);
    }
    bar.finish_and_clear();
    points.sort_by_key(|point| point.slots);
    points.dedup_by_key(|point| point.slots);

    let curve = curve(&lru, least);
    let selected_bytes = deployment.bytes(selected);
    let wishes = [
        options.hit_rate.map(|percent| Wanted { tpot_ms: None, hit_rate: Some(percent) }),
        model.as_ref().and_then(|model| model.wanted(selected_bytes)),
    ];
    let least = wishes.into_iter().flatten();
    let least = least.map(|wanted| wanted.answer(&points, &curve)).collect();
    Ok(Report {
        trace: options.trace.name(),
        steps: trace.steps,
        tokens: trace.tokens,
        k: trace.k,
        distinct_ids: lru.distinct_ids(),
        repeats: trace.repeats(),
        deployment,
        selected_bytes_per_step: (later_steps > 0).then_some(selected_bytes),
        model,
        points,
        lru_curve: curve,
        least,
    })
}

/// Returns the least S that the operator accepts for the trace.
fn least_slots(trace: &Trace) -> Result<usize> {
    let step = trace.tokens * trace.k;
    let least = step.max(MIN_SLOTS as usize).next_power_of_two();
    if least > MAX_SLOTS as usize {
        let limit = format!("it must be at most S, and the largest S is {MAX_SLOTS}");
        let value = format!("{step} ({} * {})", trace.tokens, trace.k);
        let remedy = "take every token as a step of its own with --mtp0, or select fewer ids";
        return Err(Error::invalid("N_q*K", value, limit, remedy).into());
    }
    Ok(least)
}

/// Returns the powers of two from `least` to the first that is at least `enough`.
fn tested(least: usize, enough: usize) -> Vec<u32> {
    let largest = enough.next_power_of_two().clamp(least, MAX_SLOTS as usize);
    let all = std::iter::successors(Some(least), |slots| Some(2 * slots));
    all.take_while(|&slots| slots <= largest).map(|slots| slots as u32).collect()
}

/// Returns exact LRU at every multiple of 64 from the least S to the first that has all hits; nothing
/// if no step after the first selects an id.
fn curve(lru: &LruCurve, least: usize) -> Vec<Curve> {
    let end = lru.largest_distance().next_multiple_of(STRIDE).max(least);
    let point = |slots: usize| {
        let hit_rate = lru.count(slots).percent()?;
        Some(Curve { slots, hit_rate })
    };
    (least..=end).step_by(STRIDE).filter_map(point).collect()
}
