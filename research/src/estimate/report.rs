//! The figures of an estimate; all of them are modelled.

use anyhow::Result;
use avsg::device::params::Table;
use avsg_sim::cycles::{Phase, Prices, Times as Cycles};
use serde::Serialize;

use super::code::{CodeRow, row as code_row};
use super::measured::{Beside, Kept, Other, Taken};
use super::options::{Inputs, Options};
use super::ours::{Ours, Variant};
use super::paper::Paper;
use super::phase::{PHASES, learn, stage_one, stage_two};
use super::points::{PointRow, points};
use super::ranges::{Goal, RangeRow, Times, corners, ends, goal, rows};
use super::stage_two as copies;
use avsg_cli::command::output;
use avsg_cli::constants::{CONSTANTS, Constant, Constants, Name};
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
    pub lifetime: String,
    pub requests: usize,
    /// Bytes of unified buffer that Stage One uses, of 188416.
    pub ub_bytes: u32,
    pub constants: Vec<UsedConstant>,
    pub counts: Counts,
    pub phases: Vec<PhaseRow>,
    pub pipes: Vec<PipeRow>,
    pub totals: Vec<Total>,
    pub points: Vec<PointRow>,
    /// Microseconds to start the kernel of a step, which both kernels take.
    pub start_us: f64,
    /// Stage One and the modelled paper kernel over the range of each constant.
    pub ranges: Vec<RangeRow>,
    /// The same over the ranges of all constants, with the start of the kernel and without it.
    pub goals: [Goal; 2],
    pub variants: Vec<VariantRow>,
    /// The code of both kernels, and what it takes to fetch it.
    pub code: Vec<CodeRow>,
    /// What a report of `avsg doctor` gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doctor: Option<FromDoctor>,
}

/// What a report of `avsg doctor` says about the model.
#[derive(Serialize)]
pub struct FromDoctor {
    /// Whether the report is of the simulated device, so that nothing in it was measured on a device.
    pub simulated: bool,
    /// The chip that was examined.
    pub soc: &'static str,
    pub taken: Vec<Taken>,
    pub kept: Vec<Kept>,
    pub others: Vec<Other>,
    pub times: Vec<Beside>,
}

/// Returns what the report of `avsg doctor` gives, with the times of the model by the used constants.
fn from_doctor(inputs: &Inputs) -> Result<Option<FromDoctor>> {
    let Some(measured) = &inputs.measured else { return Ok(None) };
    Ok(Some(FromDoctor {
        simulated: measured.simulated(),
        soc: measured.soc.name,
        taken: measured.taken.clone(),
        kept: measured.kept.clone(),
        others: measured.others.clone(),
        times: measured.beside(&inputs.constants)?,
    }))
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

/// Means of the timed steps, for one request with one token.
#[derive(Serialize)]
pub struct Counts {
    /// Number of timed steps.
    pub steps: usize,
    /// Ids that hit.
    pub hits: f64,
    /// Ids that miss.
    pub misses: f64,
    /// Ids that miss in the paper's table.
    pub paper_misses: f64,
}

/// A phase of Stage One on the core that owns the first request.
#[derive(Serialize)]
pub struct PhaseRow {
    pub phase: &'static str,
    /// Cycles until all pipes are free of the phase's work.
    pub cycles: f64,
    /// Cycles in which the pipes S, V, MTE2 and MTE3 work.
    pub work: [f64; 4],
    pub us: f64,
    /// The modelled paper kernel.
    pub paper_us: f64,
}

/// What a pipe does in Stage One, in cycles.
#[derive(Serialize)]
pub struct PipeRow {
    pub kernel: &'static str,
    pub pipe: &'static str,
    pub work: f64,
    /// Barriers, and waits for other pipes and cores in them.
    pub barriers: f64,
    /// Waits for flags.
    pub flags: f64,
    /// Waits until the scalar unit issues an instruction; of the scalar unit, the time to issue.
    pub issue: f64,
    /// Work in percent of Stage One.
    pub work_percent: f64,
}

/// The time of a step of the whole batch.
#[derive(Serialize)]
pub struct Total {
    pub kernel: &'static str,
    pub stage_one_us: f64,
    pub stage_two_us: f64,
    /// The time in which learned lifetimes learn from the step, behind Stage Two.
    pub learn_us: f64,
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

/// Runs the trace on both kernels and computes the estimate.
pub fn run(options: &Options, inputs: &Inputs) -> Result<Report> {
    let Inputs { soc, trace, params, segments, .. } = inputs;
    // If the trace is too short, its first half fills the buffer and its second half is timed.
    let fits = trace.steps >= options.warm + options.steps;
    let warm = if fits { options.warm } else { trace.steps / 2 };
    let bar = output::progress(4, "parts");
    let ours = Ours::new(params, trace, warm, segments)?;
    let paper = Paper::new(params.slots, trace, warm)?;
    bar.inc(1);
    let timed = Timed { ours, paper, requests: options.requests, soc };
    let report = timed.report(options, inputs, || bar.inc(1))?;
    bar.finish_and_clear();
    Ok(report)
}

/// Both kernels on the steps of the trace.
struct Timed<'a> {
    ours: Ours,
    paper: Paper,
    requests: usize,
    soc: &'a Soc,
}

/// Returns times after the start of the kernel together with its start on all cores.
fn with_start(c: &Constants, after: &Times) -> Times {
    let start = c.get(Name::LaunchAll);
    Times::new(start + after.ours_us, start + after.paper_us)
}

impl Timed<'_> {
    /// Returns the cycles of a step of the operator and of the paper's Stage One under each set of constants.
    fn cycles(&self, all: &[Constants]) -> Result<[Vec<Cycles>; 2]> {
        let prices: Vec<Prices> = all.iter().map(|c| c.prices(self.soc)).collect();
        let ours = self.ours.times(Variant::Step, self.requests, self.soc.cores, &prices)?;
        Ok([ours, self.paper.times(&prices)?])
    }

    /// Returns Stage One of the whole batch after the start of the kernel, from the cycles under each set of
    /// constants. Requests above the number of cores take turns in the paper's kernel, as they do in the
    /// operator's.
    fn after_start(&self, all: &[Constants], [ours, paper]: &[Vec<Cycles>; 2]) -> Vec<Times> {
        let turns = self.requests.div_ceil(self.soc.cores as usize) as f64;
        let one = |((c, ours), paper): ((&Constants, &Cycles), &Cycles)| {
            let ours = self.soc.us(stage_one(ours, c.prices(self.soc).sync_all));
            Times::new(ours, turns * self.soc.us(paper.total))
        };
        all.iter().zip(ours).zip(paper).map(one).collect()
    }

    fn report(&self, options: &Options, inputs: &Inputs, tick: impl Fn()) -> Result<Report> {
        let Inputs { constants: c, soc, params, segments, .. } = inputs;
        let all = ends(c);
        let cycles = self.cycles(&all)?;
        let after = self.after_start(&all, &cycles);
        let whole: Vec<_> = all.iter().zip(&after).map(|(c, after)| with_start(c, after)).collect();
        tick();
        let [[least, most], [least_after, most_after]] = [&whole, &after].map(|t| corners(c, t));
        let at = [least, most, least_after, most_after];
        let there = self.after_start(&at, &self.cycles(&at)?);
        let with = |n: usize| (at[n], with_start(&at[n], &there[n]));
        let without = |n: usize| (at[n], there[n]);
        tick();
        let variants = self.variants(c, after[0].ours_us)?;
        let code = self.code(c)?;
        tick();
        let points = if options.no_points { Vec::new() } else { points(c)? };
        let turns = self.requests as f64;
        let copy = |misses: f64| copies::us(c, soc, misses * turns, segments);
        let total = |kernel, stage_one_us: f64, stage_two_us: f64, learn_us: f64| {
            let step_us = stage_one_us + c.get(Name::Syncall) + stage_two_us + learn_us;
            Total { kernel, stage_one_us, stage_two_us, learn_us, step_us }
        };
        let [ours, theirs] = [&cycles[0][0], &cycles[1][0]];
        let beside = copy(self.ours.misses).max(soc.us(stage_two(ours)));
        let of_stage_one = [after[0].ours_us, after[0].paper_us].map(|us| us * f64::from(soc.mhz));
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
            lifetime: params.lifetime.to_string(),
            requests: options.requests,
            ub_bytes: self.ours.ub_bytes,
            constants: constants_used(c),
            counts: Counts {
                steps: self.ours.steps(),
                hits: self.ours.hits,
                misses: self.ours.misses,
                paper_misses: self.paper.misses,
            },
            phases: phases(soc, ours, theirs, c.prices(soc).sync_all),
            pipes: [("AVSG", ours), ("paper", theirs)]
                .into_iter()
                .zip(of_stage_one)
                .flat_map(|((kernel, times), cycles)| pipes(kernel, times, cycles))
                .collect(),
            totals: vec![
                total("paper", whole[0].paper_us, copy(self.paper.misses), 0.0),
                total("ours", whole[0].ours_us, beside, soc.us(learn(ours))),
            ],
            points,
            start_us: c.get(Name::LaunchAll),
            ranges: rows(c, &whole),
            goals: [
                goal("Stage One with the start of the kernel", c, whole[0], [with(0), with(1)]),
                goal("Stage One after the start", c, after[0], [without(2), without(3)]),
            ],
            variants,
            code,
            doctor: from_doctor(inputs)?,
        })
    }

    /// Returns what the code of each kernel takes: of `avsg_step` as it is and with a copy of each function for each
    /// call, and of the paper's kernel.
    fn code(&self, c: &Constants) -> Result<Vec<CodeRow>> {
        let fetch = &CONSTANTS[Name::Fetch as usize];
        let of = |value| c.with_at(Name::Fetch as usize, value).prices(self.soc);
        let free = Prices { fetch: 0.0, call: 0.0, ..c.prices(self.soc) };
        let prices = [free, of(fetch.lo), c.prices(self.soc), of(fetch.hi)];
        let ours = |variant| self.ours.times(variant, self.requests, self.soc.cores, &prices);
        let [as_it_is, copied] = self.ours.sizes;
        let rows = [
            ("AVSG", as_it_is, ours(Variant::Step)?),
            ("AVSG, every function copied", copied, ours(Variant::Copied)?),
            ("paper", self.paper.size, self.paper.times(&prices)?),
        ];
        let row = |(kernel, size, times): (&'static str, _, Vec<Cycles>)| {
            let times: [Cycles; 4] = std::array::from_fn(|n| times[n]);
            code_row(kernel, size, &times, self.soc, prices[0].sync_all)
        };
        Ok(rows.into_iter().map(row).collect())
    }

    /// Returns the time that each optimisation saves.
    fn variants(&self, c: &Constants, step: f64) -> Result<Vec<VariantRow>> {
        let (soc, prices) = (self.soc, [c.prices(self.soc)]);
        let times = |v| self.ours.times(v, self.requests, soc.cores, &prices);
        let unshared = soc.us(stage_one(&times(Variant::Unshared)?[0], prices[0].sync_all));
        let at_once = soc.us(times(Variant::Plan)?[0].total);
        let start = c.get(Name::LaunchAll);
        let row =
            |variant, us: f64, saves_us| VariantRow { variant, stage_one_us: start + us, saves_us };
        Ok(vec![
            row("with all of them", step, 0.0),
            row("without sharing", unshared, unshared - step),
            row("without sharing and deferral", at_once, at_once - unshared),
        ])
    }
}

/// Returns the constants with the values that are used.
pub fn constants_used(c: &Constants) -> Vec<UsedConstant> {
    let used = |(index, k): (usize, &Constant)| {
        let value = c.at(index);
        let (name, unit, source, document) = (k.name, k.unit, k.source, k.document);
        let in_range = k.allows([value; 2]);
        UsedConstant { name, value, unit, range: [k.lo, k.hi], source, document, in_range }
    };
    CONSTANTS.iter().enumerate().map(used).collect()
}

fn phases(soc: &Soc, ours: &Cycles, paper: &Cycles, sync_all: f64) -> Vec<PhaseRow> {
    let row = |((&(phase, _), ours), paper): ((&(&'static str, _), &Phase), &Phase)| PhaseRow {
        phase,
        cycles: ours.elapsed,
        work: ours.spent.map(|pipe| pipe[0]),
        us: soc.us(ours.elapsed),
        paper_us: soc.us(paper.elapsed),
    };
    let mut rows: Vec<_> = PHASES.iter().zip(&ours.phases).zip(&paper.phases).map(row).collect();
    if let Some(wait) = rows.last_mut()
        && wait.cycles > 0.0
    {
        (wait.cycles, wait.us) = (wait.cycles - sync_all, soc.us(wait.cycles - sync_all));
    }
    rows
}

fn pipes(kernel: &'static str, times: &Cycles, stage_one: f64) -> [PipeRow; 4] {
    let row = |n: usize| {
        let mut sum = [0.0; 4];
        for phase in &times.phases[..PHASES.len()] {
            sum.iter_mut().zip(phase.spent[n]).for_each(|(sum, cycles)| *sum += cycles);
        }
        let [work, barriers, flags, issue] = sum;
        let pipe = ["S", "V", "MTE2", "MTE3"][n];
        PipeRow {
            kernel,
            pipe,
            work,
            barriers,
            flags,
            issue,
            work_percent: 100.0 * work / stage_one,
        }
    };
    std::array::from_fn(row)
}
