//! `avsg size` computes how many slots a recorded trace needs, and what they gain.

mod deployment;
mod disk_times;
mod report;
mod show;
mod time;
mod wish;

use std::process::ExitCode;

use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::{MAX_PAPER_SLOTS, Params};
use avsg::engine::MachineChoice;
use clap::Args;

use super::busy::Watch;
use super::engine_options::TableOptions;
use super::lifetimes::{least_slots, recommended};
use super::model::ModelOptions;
use super::output::{self, OutputOptions};
use super::trace_options::TraceOptions;
use super::traces::{Taken, Traces, operator_hits, policy_hits};
use crate::baseline::{ExactLru, HitCount};
use deployment::Deployment;
use report::{Copies, Point, Report, Worst};
use time::TimeOptions;
use wish::Wish;

/// The exit status if no measured S has what was asked for.
const UNMET: u8 = 3;
/// What S is a multiple of.
const STRIDE: usize = 64;

#[derive(Args, Debug)]
#[command(
    after_help = "Hit rates are measured: the table runs the trace at every S that is shown, with two lifetime rules unless \
                  --lifetime names one, and shows the default rule, or the other one if the trace shows that it misses less. \
                  The first step, which starts with an empty buffer, is left out. Times are a model, in which the matching \
                  and a disk are measured. kB, MB and GB are powers of 1000 bytes. The exit status is 3 if no measured S has what \
                  --hit-rate, --tpot-ms and --device-gb ask for. Examples:\n  \
                  avsg size tests/data/nomicon-4k-k256.npz\n  \
                  avsg size ids.npy --device-gb 4 --requests 16\n  \
                  avsg size ids.npy --link-gbs 50 --match-us 60 --step-ms 40 --tpot-ms 12\n  \
                  avsg size ids.npy --link disk:/var/tmp --indexers 21\n  \
                  avsg size ids.npy --config config.json --context 128K\n  \
                  avsg size layers.npz --layer all --request all\n  avsg size prompt1.npy prompt2.npy"
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
    model: ModelOptions,
    /// Context length, the tokens of each request whose rows the host pool holds; at least the tokens that
    /// the trace selects from, which are the default
    #[arg(long, value_name = "N")]
    context: Option<usize>,
    #[command(flatten)]
    wish: Wish,
    #[command(flatten)]
    time: TimeOptions,
    #[command(flatten)]
    output: OutputOptions,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    options.output.check(options.trace.paths())?;
    // What the trace does not decide is checked before the trace is read.
    options.model.model(None, Some(usize::MAX))?;
    let report = measure(options)?;
    options.output.write(&report, || show::page(&report))?;
    let is_unmet = report.recommended.is_none() && report.no_buffer.is_some();
    Ok(if is_unmet { ExitCode::from(UNMET) } else { ExitCode::SUCCESS })
}

fn measure(options: &Options) -> Result<Report> {
    let traces = &Traces::new(&options.trace)?;
    let layers = options.trace.takes_all_layers().then(|| traces.layers());
    let model = options.model.model(None, layers)?;
    let deployment = Deployment::new(model, options.context, traces)?;
    let machine = Machine::find(MachineChoice::Auto)?;
    let all = traces.ceiling()?;
    let [selected, once] = traces.gathers().map(|gather| traces.misses_per_step(&gather));
    let trace = traces.first();
    let model = options.time.model(trace, &deployment, selected.unwrap_or(0.0), machine)?;
    // What a step copies that misses `misses` rows of each layer and request, with these times of matching.
    let copies = |misses: f64, us: [f64; 3]| {
        let times = model.as_ref().map(|model| us.map(|us| model.times(misses, us)));
        Copies { misses_per_step: misses, bytes_per_step: deployment.bytes(misses), times }
    };

    let is_rule_open = options.table.is_rule_open();
    let table = |slots| options.table.params(trace.k, trace.tokens, slots, 0);
    let device_bytes = |slots| deployment.device_bytes(table(slots)?);
    let sizes = sizes(&options.slots, traces, all, options.wish.device_bytes, device_bytes)?;
    let bar = output::progress(sizes.len() * (1 + usize::from(is_rule_open)), "size");
    let (mut points, mut spreads) = (Vec::new(), Vec::new());
    let watch = Watch::start();
    for slots in sizes {
        let measure = |params: &Params| {
            let counts = operator_hits(traces, params, machine);
            bar.inc(1);
            counts
        };
        let params = table(slots)?;
        let (params, counts) = if is_rule_open {
            recommended(params, traces.counted(), measure)?
        } else {
            (params, measure(&params)?)
        };
        let hits: HitCount = counts.iter().copied().sum();
        let us = model.as_ref().map(|model| model.matching(trace, &params, machine));
        let us = us.transpose()?.unwrap_or_default();
        spreads.push(us[2] / us[0]);
        points.push(Point {
            slots,
            lifetime: params.lifetime.to_string(),
            hit_rate: hits.percent(),
            worst: Worst::of(traces, &counts),
            copies: traces.misses_per_step(&hits).map(|misses| copies(misses, us)),
            device_bytes: deployment.device_bytes(params)?,
        });
    }
    drop(bar);
    let is_timed = model.as_ref().is_some_and(|model| model.match_us.is_none());
    let disturbance = is_timed.then(|| watch.stop(trace.steps * points.len(), spreads));
    let [no_buffer, no_repeats] =
        [selected, once].map(|rows| rows.map(|rows| copies(rows, [0.0; 3])));
    Ok(Report {
        taken: Taken::new(&options.trace, traces),
        traces: traces.all.len(),
        ceiling: all.percent(),
        recommended: options.wish.recommended(&points, deployment.host_bytes).cloned(),
        deployment,
        model,
        disturbance,
        no_buffer,
        no_repeats,
        wish: options.wish,
        points,
    })
}

/// Returns the S to measure in ascending order: `chosen`, or else the powers of two from the least that
/// the operator accepts to the first with which exact LRU has `all` hits. With a limit of the bytes, those that
/// fit and the largest multiple of 64 between them that does, or the least if none fits.
fn sizes(
    chosen: &[u32],
    traces: &Traces,
    all: HitCount,
    limit: Option<f64>,
    bytes: impl Fn(u32) -> Result<usize>,
) -> Result<Vec<u32>> {
    let mut sizes = chosen.to_vec();
    if sizes.is_empty() {
        let mut slots = least_slots(traces.first().tokens * traces.first().k);
        while sizes.last().is_none_or(|&last| 2 * last <= MAX_PAPER_SLOTS) {
            sizes.push(slots);
            if policy_hits(traces, |_| Ok(ExactLru::new(slots as usize)?))?.hits == all.hits {
                break;
            }
            slots *= 2;
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    let Some(limit) = limit.filter(|_| chosen.is_empty()) else { return Ok(sizes) };
    let fits = |&slots: &u32| bytes(slots).is_ok_and(|bytes| bytes as f64 <= limit);
    let fitting = sizes.partition_point(fits);
    let above = sizes.get(fitting).copied();
    sizes.truncate(fitting.max(1));
    if let (Some(above), true) = (above, fitting > 0) {
        let mut between = (sizes[fitting - 1]..above).step_by(STRIDE).skip(1).rev();
        // The paper's table has powers of two only.
        sizes.extend(between.find(fits));
    }
    Ok(sizes)
}
