//! The figures of an estimate; all of them are modelled.

use anyhow::Result;
use avsg::device::params::{Params, Table};
use avsg::device::share::sharers;
use avsg_linker::ascend::cost::{UNITS, Unit, Work};
use serde::Serialize;

use super::constants::{CONSTANTS, Constants, Start};
use super::count::{Counts, Profile, count};
use super::options::{Inputs, Options};
use super::ours::{Cost, Variant, cost};
use super::paper;
use super::phase::PHASES;
use super::points::{PointRow, points};
use super::ranges::{Goal, RangeRow, Times, goal, rows};
use super::stage_two;
use avsg_cli::command::geometry::Rule;
use avsg_cli::command::output;
use avsg_linker::ascend::soc::Soc;

/// The note that is printed with every table.
pub const LABEL: &str = "model, not measured";

/// The result of an estimate.
#[derive(Serialize)]
pub struct Report {
    pub label: &'static str,
    pub soc: &'static str,
    pub cores: usize,
    pub mhz: f64,
    pub k: u32,
    pub slots: u32,
    pub table: &'static str,
    pub spread: u32,
    pub retries: u32,
    #[serde(flatten)]
    pub rule: Rule,
    pub tile: u32,
    pub requests: usize,
    /// Bytes of unified buffer that Stage One uses, of 188416.
    pub ub_bytes: u32,
    pub constants: Vec<UsedConstant>,
    pub counts: Counts,
    pub phases: Vec<PhaseRow>,
    pub terms: Vec<Term>,
    pub totals: Vec<Total>,
    pub points: Vec<PointRow>,
    /// Microseconds to start the kernel of a step, which both kernels take.
    pub start_us: f64,
    /// Stage One and the modelled paper kernel over the range of each constant.
    pub ranges: Vec<RangeRow>,
    /// The same over the ranges of all constants, with the start of the kernel and without it.
    pub goals: [Goal; 2],
    pub variants: Vec<VariantRow>,
}

/// A constant with the value that was used.
#[derive(Serialize)]
pub struct UsedConstant {
    pub name: &'static str,
    pub value: f64,
    pub unit: &'static str,
    pub range: [f64; 2],
    pub source: &'static str,
    /// The document and section that state the value or its bounds.
    pub document: Option<&'static str>,
    pub in_range: bool,
}

/// A phase of Stage One of one request; the counts are of the operator's own kernel.
#[derive(Serialize)]
pub struct PhaseRow {
    pub phase: &'static str,
    pub vector_ops: f64,
    pub gathers: f64,
    pub scalars: f64,
    pub cycles: f64,
    pub us: f64,
    pub paper_us: Option<f64>,
}

/// The time that a unit of work adds to Stage One.
#[derive(Serialize)]
pub struct Term {
    pub unit: &'static str,
    pub cycles: f64,
    pub us: f64,
}

/// The time of a step of the whole batch.
#[derive(Serialize)]
pub struct Total {
    pub kernel: &'static str,
    pub stage_one_us: f64,
    pub stage_two_us: f64,
    pub step_us: f64,
}

/// Stage One without some of its optimisations.
#[derive(Serialize)]
pub struct VariantRow {
    pub variant: &'static str,
    pub stage_one_us: f64,
    /// The time that the optimisation saves.
    pub saves_us: f64,
}

/// Replays the trace on both kernels and computes the estimate.
pub fn run(options: &Options, inputs: &Inputs) -> Result<Report> {
    let Inputs { trace, params, .. } = inputs;
    // If the trace is too short, its first half fills the buffer and its second half is counted.
    let fits = trace.steps >= options.warm + options.steps;
    let warm = if fits { options.warm } else { trace.steps / 2 };
    let bar = output::progress(2 * trace.steps, "steps replayed");
    let tick = || bar.inc(1);
    let sharers = sharers(options.requests, params.k as usize, inputs.soc.cores as usize);
    let ours = count(params, trace, warm, sharers, &tick)?;
    let baseline = Params { page: params.page, ..Params::paper(params.k, 1, params.slots) };
    let baseline = count(&baseline, trace, warm, 1, &tick)?;
    bar.finish_and_clear();
    report(options, inputs, &ours, &baseline)
}

fn report(
    options: &Options,
    inputs: &Inputs,
    ours: &Profile,
    baseline: &Profile,
) -> Result<Report> {
    let Inputs { constants: c, soc, params, .. } = inputs;
    let cores = soc.cores as usize;
    let emitted = cost(ours, Variant::EMITTED, options.requests, cores);
    let bar = output::progress(1, "points");
    let points = if options.no_points { Vec::new() } else { points(c)? };
    bar.finish_and_clear();
    let requests = options.requests;
    let whole = |c: &Constants| {
        let paper = paper_cost(baseline, c);
        Times::new(emitted.stage_one_us(soc, c), paper.stage_one_us(soc, c))
    };
    let started = |c: &Constants| {
        let paper = paper_cost(baseline, c);
        Times::new(emitted.started_us(soc, c), paper.started_us(soc, c))
    };
    Ok(Report {
        label: LABEL,
        soc: soc.name,
        cores: soc.cores as usize,
        mhz: f64::from(soc.mhz),
        k: params.k,
        slots: params.slots,
        table: if params.table == Table::Wide { "wide" } else { "paper" },
        spread: params.spread,
        retries: params.retries,
        rule: options.table.rule(params),
        tile: ours.tile,
        requests: options.requests,
        ub_bytes: ours.ub,
        constants: constants_used(c),
        counts: ours.counts.clone(),
        phases: phases(c, soc, &emitted, &paper::kernel(&baseline.params, &baseline.counts, c)),
        terms: terms(c, soc, &emitted),
        totals: totals(options, inputs, ours, baseline)?,
        points,
        start_us: c.start_us(Start::AllCores),
        ranges: rows(c, whole),
        goals: [
            goal("Stage One with the start of the kernel", c, whole),
            goal("Stage One after the start", c, started),
        ],
        variants: variants(requests, c, soc, ours),
    })
}

/// Returns the constants with the values that are used.
pub fn constants_used(c: &Constants) -> Vec<UsedConstant> {
    let used = |(index, k): (usize, &super::constants::Constant)| {
        let value = c.at(index);
        let (name, unit, source, document) = (k.name, k.unit, k.source, k.document);
        let in_range = (k.lo..=k.hi).contains(&value);
        UsedConstant { name, value, unit, range: [k.lo, k.hi], source, document, in_range }
    };
    CONSTANTS.iter().enumerate().map(used).collect()
}

fn phases(c: &Constants, soc: &Soc, ours: &Cost, baseline: &[Work]) -> Vec<PhaseRow> {
    let prices = c.prices();
    let row = |phase, ours: Work, baseline: Option<Work>| {
        let cycles = ours.cycles(&prices);
        let paper_us = baseline.map(|work| soc.us(work.cycles(&prices)));
        let [vector_ops, gathers, scalars] =
            [Unit::Ops, Unit::Gathers, Unit::Scalars].map(|unit| ours.get(unit));
        PhaseRow { phase, vector_ops, gathers, scalars, cycles, us: soc.us(cycles), paper_us }
    };
    let pairs = PHASES.iter().zip(ours.phases).zip(baseline);
    let mut rows: Vec<_> = pairs.map(|((p, ours), &work)| row(p.1, ours, Some(work))).collect();
    rows.push(row("Table transfers (the paper's: in Publish)", ours.table, None));
    if ours.shared {
        let us = ours.sharing_us(soc, c);
        let row = row("SyncAll and table reads of sharing cores", Work::default(), None);
        rows.push(PhaseRow { cycles: us * f64::from(soc.mhz), us, ..row });
    }
    let start = c.start_us(ours.start);
    let row = row("Start of the kernel on all cores", Work::default(), None);
    rows.push(PhaseRow {
        cycles: start * f64::from(soc.mhz),
        us: start,
        paper_us: Some(start),
        ..row
    });
    rows
}

fn terms(c: &Constants, soc: &Soc, ours: &Cost) -> Vec<Term> {
    let cycles = UNITS.iter().zip(ours.stage_one().terms(&c.prices()));
    let mut terms: Vec<_> =
        cycles.map(|(u, cycles)| Term { unit: u.1, cycles, us: soc.us(cycles) }).collect();
    if ours.shared {
        let us = ours.sharing_us(soc, c);
        let unit = "SyncAll and table reads of sharing cores";
        terms.push(Term { unit, cycles: us * f64::from(soc.mhz), us });
    }
    terms.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    terms
}

/// Returns the time of a step of the batch. Requests above the number of cores take turns, and the
/// misses of all requests are spread over all cores.
fn totals(
    options: &Options,
    inputs: &Inputs,
    ours: &Profile,
    baseline: &Profile,
) -> Result<Vec<Total>> {
    let Inputs { constants: c, soc, segments, .. } = inputs;
    let turns = options.requests.div_ceil(soc.cores as usize) as f64;
    let copy =
        |p: &Profile| stage_two::us(c, soc, p.counts.misses * options.requests as f64, segments);
    let total = |kernel, cost: &Cost, copy: f64| {
        let stage_one_us = c.start_us(cost.start) + turns * cost.started_us(soc, c);
        let after_stage_one = cost.kernel_us(soc, c, copy) - cost.stage_one_us(soc, c);
        let step_us = stage_one_us + after_stage_one;
        Total { kernel, stage_one_us, stage_two_us: copy, step_us }
    };
    let paper = paper_cost(baseline, c);
    let variant = |variant| cost(ours, variant, options.requests, soc.cores as usize);
    Ok(vec![
        total("paper", &paper, copy(baseline)),
        total("ours", &variant(Variant::EMITTED), copy(ours)),
        total("ours, refreshes at once", &variant(Variant::AT_ONCE), copy(ours)),
    ])
}

/// Returns the cost of the paper's kernel, which starts all cores too, for its Stage Two.
fn paper_cost(baseline: &Profile, c: &Constants) -> Cost {
    let phases = paper::kernel(&baseline.params, &baseline.counts, c);
    Cost { phases, start: Start::AllCores, ..Cost::default() }
}

/// Returns the time that each optimisation saves. Deferral is compared without sharing.
fn variants(requests: usize, c: &Constants, soc: &Soc, ours: &Profile) -> Vec<VariantRow> {
    let (all, unshared) = (Variant::EMITTED, Variant::UNSHARED);
    let us = |variant| cost(ours, variant, requests, soc.cores as usize).stage_one_us(soc, c);
    let row = |variant, without, with| {
        let stage_one_us = us(without);
        VariantRow { variant, stage_one_us, saves_us: stage_one_us - us(with) }
    };
    let none = Variant { deferral: false, narrow: false, sharing: false };
    vec![
        row("with all of them", all, all),
        row("without sharing", unshared, all),
        row("without sharing and deferral", Variant { deferral: false, ..unshared }, unshared),
        row("without narrow lifetimes", Variant { narrow: false, ..all }, all),
        row("with none of them", none, all),
    ]
}
