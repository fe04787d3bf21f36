//! The figures of an estimate, all of them a model's.

use crate::trace::Trace;
use anyhow::Result;
use avsg::device::params::{Params, Table};
use avsg::device::share::sharers;
use avsg_linker::cost::{UNITS, Unit, Work};
use serde::Serialize;

use super::constants::{CONSTANTS, Constants, Name};
use super::count::{Counts, Profile, count};
use super::ours::{Cost, Variant, cost};
use super::paper;
use super::phase::PHASES;
use super::points::{PointRow, points};
use super::{Options, stage_two};
use crate::command::output;
use avsg_linker::soc::Soc;

/// Printed beside every figure.
pub const LABEL: &str = "model, not measured";
/// The rates of Gather that nobody knows: the ends of its range and between.
const GATHER: [f64; 4] = [0.5, 1.0, 2.0, 4.0];

/// What is estimated.
pub struct Inputs {
    pub constants: Constants,
    pub soc: Soc,
    pub trace: Trace,
    pub params: Params,
}

/// The whole result.
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
    pub tile: u32,
    pub requests: usize,
    /// Bytes of UB that it takes, of 188416.
    pub ub_bytes: u32,
    pub constants: Vec<Set>,
    pub counts: Counts,
    pub phases: Vec<PhaseRow>,
    pub terms: Vec<Term>,
    pub totals: Vec<Total>,
    pub points: Vec<PointRow>,
    pub gather: Vec<Ratio>,
    pub variants: Vec<VariantRow>,
    /// Whether ours takes at most half of the modelled paper kernel at every rate of
    /// Gather.
    pub target_met: bool,
}

/// A constant as it was used.
#[derive(Serialize)]
pub struct Set {
    pub name: &'static str,
    pub value: f64,
    pub unit: &'static str,
    pub range: [f64; 2],
    pub source: &'static str,
    pub in_range: bool,
}

/// A phase of one request, ours beside the paper's.
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

/// What a unit of work adds to Stage One.
#[derive(Serialize)]
pub struct Term {
    pub unit: &'static str,
    pub cycles: f64,
    pub us: f64,
}

/// A step of the whole batch.
#[derive(Serialize)]
pub struct Total {
    pub kernel: &'static str,
    pub stage_one_us: f64,
    pub stage_two_us: f64,
    pub step_us: f64,
}

/// Ours over the paper's kernel at one rate of Gather.
#[derive(Serialize)]
pub struct Ratio {
    pub gather: f64,
    pub paper_us: f64,
    pub ours_us: f64,
    pub ratio: f64,
    /// As in a batch that leaves no core to share with.
    pub alone_us: f64,
    pub alone_ratio: f64,
}

/// Ours without one of its ideas.
#[derive(Serialize)]
pub struct VariantRow {
    pub variant: &'static str,
    pub stage_one_us: f64,
    pub saves_us: f64,
}

/// Makes the estimate and writes it.
pub fn run(options: &Options, inputs: &Inputs) -> Result<Report> {
    let Inputs { trace, params, .. } = inputs;
    // A trace that is too short for both is halved.
    let fits = trace.steps >= options.warm + options.steps;
    let warm = if fits { options.warm } else { trace.steps / 2 };
    let bar = output::progress(2 * trace.steps, "steps replayed");
    let tick = || bar.inc(1);
    let each = sharers(options.requests, params.k as usize, inputs.soc.cores as usize);
    let ours = count(params, trace, warm, each, &tick)?;
    let theirs = Params { page: params.page, ..Params::paper(params.k, 1, params.slots) };
    let theirs = count(&theirs, trace, warm, 1, &tick)?;
    bar.finish_and_clear();
    report(options, inputs, &ours, &theirs)
}

fn report(options: &Options, inputs: &Inputs, ours: &Profile, theirs: &Profile) -> Result<Report> {
    let Inputs { constants: c, soc, params, .. } = inputs;
    let cores = soc.cores as usize;
    let emitted = cost(ours, Variant::EMITTED, options.requests, cores);
    let points = if options.no_points { Vec::new() } else { points(c)? };
    let requests = options.requests;
    let rate = |&g: &f64| ratio(g, requests, &c.at_gather(g), soc, [ours, theirs]);
    let gather: Vec<Ratio> = GATHER.iter().map(rate).collect();
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
        tile: ours.tile,
        requests: options.requests,
        ub_bytes: ours.ub,
        constants: constants_used(c),
        counts: ours.counts.clone(),
        phases: phases(c, soc, &emitted, &paper::kernel(&theirs.params, &theirs.counts, c)),
        terms: terms(c, soc, &emitted),
        totals: totals(options, inputs, ours, theirs)?,
        points,
        target_met: gather.iter().all(|r| r.ratio <= 0.5),
        gather,
        variants: variants(requests, c, soc, ours),
    })
}

/// The constants as they are used.
pub fn constants_used(c: &Constants) -> Vec<Set> {
    let each = |(at, k): (usize, &super::constants::Constant)| {
        let value = c.at(at);
        let (name, unit, source, range) = (k.name, k.unit, k.source, [k.lo, k.hi]);
        Set { name, value, unit, range, source, in_range: (k.lo..=k.hi).contains(&value) }
    };
    CONSTANTS.iter().enumerate().map(each).collect()
}

fn phases(c: &Constants, soc: &Soc, ours: &Cost, theirs: &[Work]) -> Vec<PhaseRow> {
    let prices = c.prices();
    let row = |phase, ours: Work, theirs: Option<Work>| {
        let cycles = ours.cycles(&prices);
        let paper_us = theirs.map(|work| soc.us(work.cycles(&prices)));
        let [vector_ops, gathers, scalars] =
            [Unit::Ops, Unit::Gathers, Unit::Scalars].map(|unit| ours.get(unit));
        PhaseRow { phase, vector_ops, gathers, scalars, cycles, us: soc.us(cycles), paper_us }
    };
    let pairs = PHASES.iter().zip(ours.phases).zip(theirs);
    let mut rows: Vec<_> = pairs.map(|((p, ours), &work)| row(p.1, ours, Some(work))).collect();
    rows.push(row("Table in and out (the paper's: in Publish)", ours.table, None));
    if ours.meets {
        let meeting = ours.meeting_us(soc, c);
        let row =
            row("Sharers: their meeting, and that they read one table", Work::default(), None);
        let cycles = meeting * f64::from(soc.mhz);
        rows.push(PhaseRow { cycles, us: meeting, ..row });
    }
    let launch = c.get(Name::Launch);
    let row = row("Launch", Work::default(), None);
    rows.push(PhaseRow {
        cycles: launch * f64::from(soc.mhz),
        us: launch,
        paper_us: Some(launch),
        ..row
    });
    rows
}

fn terms(c: &Constants, soc: &Soc, ours: &Cost) -> Vec<Term> {
    let each = UNITS.iter().zip(ours.stage_one().terms(&c.prices()));
    let mut terms: Vec<_> =
        each.map(|(u, cycles)| Term { unit: u.1, cycles, us: soc.us(cycles) }).collect();
    if ours.meets {
        let us = ours.meeting_us(soc, c);
        terms.push(Term { unit: "sharers' meeting", cycles: us * f64::from(soc.mhz), us });
    }
    terms.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    terms
}

/// The step of a batch: requests beyond the cores take turns, all misses are dealt to all cores.
fn totals(
    options: &Options,
    inputs: &Inputs,
    ours: &Profile,
    theirs: &Profile,
) -> Result<Vec<Total>> {
    let Inputs { constants: c, soc, .. } = inputs;
    let segments = super::segments(options)?;
    let turns = options.requests.div_ceil(soc.cores as usize) as f64;
    let copy =
        |p: &Profile| stage_two::us(c, soc, p.counts.misses * options.requests as f64, &segments);
    let total = |kernel, cost: &Cost, copy: f64| {
        let launch = c.get(Name::Launch);
        let stage_one_us = launch + turns * (cost.stage_one_us(soc, c) - launch);
        let one = cost.kernel_us(soc, c, copy) - cost.stage_one_us(soc, c);
        Total { kernel, stage_one_us, stage_two_us: copy, step_us: stage_one_us + one }
    };
    let paper = paper_cost(theirs, c);
    let variant = |variant| cost(ours, variant, options.requests, soc.cores as usize);
    Ok(vec![
        total("paper", &paper, copy(theirs)),
        total("ours", &variant(Variant::EMITTED), copy(ours)),
        total("ours, refreshes at once", &variant(Variant::AT_ONCE), copy(ours)),
    ])
}

/// The paper's kernel, as a cost.
fn paper_cost(theirs: &Profile, c: &Constants) -> Cost {
    let phases = paper::kernel(&theirs.params, &theirs.counts, c);
    Cost { phases, ..Cost::default() }
}

fn ratio(
    gather: f64,
    requests: usize,
    c: &Constants,
    soc: &Soc,
    [ours, theirs]: [&Profile; 2],
) -> Ratio {
    let us = |variant| cost(ours, variant, requests, soc.cores as usize).stage_one_us(soc, c);
    let (ours_us, alone_us) = (us(Variant::EMITTED), us(Variant::ALONE));
    let paper_us = paper_cost(theirs, c).stage_one_us(soc, c);
    let [ratio, alone_ratio] = [ours_us, alone_us].map(|us| us / paper_us);
    Ratio { gather, paper_us, ours_us, ratio, alone_us, alone_ratio }
}

/// What each idea saves. Compaction is part of what a core does that shares with nobody.
fn variants(requests: usize, c: &Constants, soc: &Soc, ours: &Profile) -> Vec<VariantRow> {
    let (all, alone) = (Variant::EMITTED, Variant::ALONE);
    let us = |variant| cost(ours, variant, requests, soc.cores as usize).stage_one_us(soc, c);
    let row = |variant, without, with| {
        let stage_one_us = us(without);
        VariantRow { variant, stage_one_us, saves_us: stage_one_us - us(with) }
    };
    let none = Variant { compaction: false, deferral: false, narrow: false, sharing: false };
    vec![
        row("with all of them", all, all),
        row("without sharing", alone, all),
        row("without sharing and compaction", Variant { compaction: false, ..alone }, alone),
        row("without sharing and deferral", Variant { deferral: false, ..alone }, alone),
        row("without narrow lifetimes", Variant { narrow: false, ..all }, all),
        row("with none", none, all),
    ]
}
