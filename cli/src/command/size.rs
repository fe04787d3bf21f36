//! `avsg size` computes how many slots a recorded trace needs, and what they gain.

mod deployment;
mod disk;
mod layers;
mod report;
mod show;
mod time;

use std::process::ExitCode;

use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::{MAX_PAPER_SLOTS, MIN_SLOTS, Params};
use avsg::engine::MachineChoice;
use clap::Args;

use super::busy::Watch;
use super::geometry::{RowOptions, TableOptions};
use super::output::{self, Sinks};
use super::recommended::{Measured, recommended};
use super::trace_options::TraceOptions;
use crate::checks::require;
use deployment::{Deployment, DeploymentOptions};
use layers::Layers;
use report::{Copies, Curve, OtherRule, Point, Recommended, Report, Wish};
use time::{Matching, TimeOptions};

/// Slots between two points of the curve.
const STRIDE: usize = 64;

#[derive(Args, Debug)]
#[command(
    mut_arg("lifetime", |rule| rule.help("Lifetime rule as of avsg replay, the only one to measure [default: wide both \
        constant:127 and learned, paper constant:16]")),
    after_help = "Hit rates are measured: the table runs the trace at every S that is shown, with two lifetime rules unless \
                  --lifetime names one, and shows the default rule, or the other one if the trace shows that it misses less. \
                  The first step, which starts with an empty buffer, is left out. Times are a model, in which the matching \
                  and a disk are measured. Examples:\n  \
                  avsg size tests/data/nomicon-4k-k256.npz\n  \
                  avsg size ids.npy --hit-rate 95\n  \
                  avsg size ids.npy --link-gbs 50 --requests 8\n  \
                  avsg size ids.npy --link-gbs 50 --match-us 60 --step-ms 40 --tpot-ms 12\n  \
                  avsg size ids.npy --link disk:/var/tmp --indexers 21\n  \
                  avsg size layers.npz --layer all"
)]
pub struct Options {
    #[command(flatten)]
    trace: TraceOptions,
    /// S to measure, the slots per request and layer; multiples of 64 up to 65536, at least N_q * K
    /// [default: every power of two up to the first that has all hits of exact LRU, or to 32768]
    #[arg(long, value_name = "S,..", value_delimiter = ',')]
    slots: Vec<u32>,
    #[command(flatten)]
    table: TableOptions,
    #[command(flatten)]
    rows: RowOptions,
    #[command(flatten)]
    deployment: DeploymentOptions,
    /// Recommend the least S with this hit rate, 0 to 100
    #[arg(long, value_name = "PERCENT")]
    hit_rate: Option<f64>,
    #[command(flatten)]
    time: TimeOptions,
    #[command(flatten)]
    sinks: Sinks,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    options.sinks.check([options.trace.path()])?;
    options.deployment.check()?;
    if let Some(rate) = options.hit_rate {
        let fits = (0.0..=100.0).contains(&rate);
        require(fits, "--hit-rate", rate, "it must be 0 to 100 percent", "pass 95 for 95 %")?;
    }
    let report = measure(options)?;
    options.sinks.write(&report, show::page, show::chart)?;
    Ok(ExitCode::SUCCESS)
}

fn measure(options: &Options) -> Result<Report> {
    let traces = options.trace.read_layers()?;
    let deployment = Deployment::new(&options.deployment, &traces, options.rows.format()?)?;
    let machine = Machine::find(MachineChoice::Auto)?;
    let bar = output::progress(1, "size");
    let layers = Layers::new(traces);
    let trace = layers.first();
    let selected = layers.selected_per_step();
    let model = options.time.model(trace, &deployment, selected.unwrap_or(0.0), machine)?;
    // What a step copies that misses `misses` rows of each layer and request.
    let copies = |misses: f64, matching: Option<Matching>| {
        let bytes = deployment.bytes(misses);
        let times = |us| model.as_ref().map(|model| model.times(misses, bytes, us));
        let range = matching.and_then(|matching| matching.range_us);
        let range = range.and_then(|[low, high]| Some([times(low)?, times(high)?]));
        let times = times(matching.map_or(0.0, |matching| matching.us));
        Copies { misses_per_step: misses, bytes_per_step: bytes, times, range }
    };

    let is_rule_open = options.table.is_rule_open();
    let sizes = sizes(&options.slots, &layers);
    bar.set_length((sizes.len() * (1 + usize::from(is_rule_open))) as u64);
    let mut points = Vec::new();
    let watch = Watch::start();
    let mut spreads = Vec::new();
    for slots in sizes {
        let measure = |params: Params| {
            let hits = layers.measure(&params, machine)?;
            bar.inc(1);
            anyhow::Ok(Measured { params, misses: hits.all.misses(), with: hits })
        };
        let params = options.table.params(trace.k, trace.tokens, slots, 0)?;
        let (Measured { params, with: hits, .. }, other) = if is_rule_open {
            let [best, other] = recommended(params, trace.steps, measure)?;
            (best, Some(other))
        } else {
            (measure(params)?, None)
        };
        let other_rule = other.map(|Measured { params, with: hits, .. }| OtherRule {
            lifetime: params.lifetime.to_string(),
            hit_rate: hits.all.percent(),
        });
        let matching = model.as_ref().map(|model| model.matching(trace, &params, machine));
        let matching = matching.transpose()?;
        spreads.extend(matching.and_then(|m| Some(m.range_us?[1] / m.us)));
        points.push(Point {
            slots,
            lifetime: params.lifetime.to_string(),
            hit_rate: hits.all.percent(),
            worst_layer: hits.worst,
            lru_hit_rate: layers.lru(slots as usize).percent(),
            copies: layers.misses_per_step(&hits.all).map(|misses| copies(misses, matching)),
            device_bytes: deployment.device_bytes(params)?,
            other_rule,
        });
    }
    bar.finish_and_clear();
    let is_timed = model.as_ref().is_some_and(|model| model.match_us.is_none());
    let disturbance = is_timed.then(|| watch.stop(trace.steps * points.len(), spreads));

    let wish = Wish { hit_rate: options.hit_rate, tpot_ms: options.time.tpot_ms };
    let best = wish.recommended(&points, deployment.host_bytes);
    let recommended = best.map(|p| Recommended { slots: p.slots, lifetime: p.lifetime.clone() });
    let no_buffer = selected.map(|selected| copies(selected, None));
    Ok(Report {
        trace: options.trace.name(),
        taken: options.trace.describe(trace, layers.len()),
        steps: trace.steps,
        layers: layers.len(),
        tokens: trace.tokens,
        k: trace.k,
        repeats: layers.repeats(),
        friendliness: layers.friendliness(),
        deployment,
        model,
        disturbance,
        no_buffer,
        lru_curve: curve(&layers),
        recommended,
        wish,
        points,
    })
}

/// Returns the S to measure in ascending order: `chosen`, or else the powers of two from the least that
/// the operator accepts to the first with which exact LRU has all hits.
fn sizes(chosen: &[u32], layers: &Layers) -> Vec<u32> {
    let mut sizes = chosen.to_vec();
    if sizes.is_empty() {
        let largest = layers.largest_distance().next_power_of_two().min(MAX_PAPER_SLOTS as usize);
        let least = least_slots(layers);
        let all = std::iter::successors(Some(least), |slots| Some(2 * slots));
        let more = all.take_while(|&slots| slots <= largest.max(least));
        sizes.extend(more.map(|slots| slots as u32));
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Returns the least S that the operator accepts for the trace.
fn least_slots(layers: &Layers) -> usize {
    let trace = layers.first();
    (trace.tokens * trace.k).max(MIN_SLOTS as usize).next_power_of_two()
}

/// Returns exact LRU at every multiple of 64 from the least S to the first that has all hits; nothing
/// if no step after the first selects an id.
fn curve(layers: &Layers) -> Vec<Curve> {
    let least = least_slots(layers);
    let end = layers.largest_distance().next_multiple_of(STRIDE).max(least);
    let point = |slots: usize| {
        let hit_rate = layers.lru(slots).percent()?;
        Some(Curve { slots, hit_rate })
    };
    (least..=end).step_by(STRIDE).filter_map(point).collect()
}
