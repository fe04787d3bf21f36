//! The paper's kernel and the scalar merge that it replaces, in the units of the model, and the figures
//! that the paper states for them.
//!
//! Entries are packed 64-bit words: q (lifetime, invalid bit, print, slot) and c. An op on all q
//! therefore runs over 2·S words. Probe examines all R + 1 links of all K ids. The numbers of hits,
//! misses and decays are counted by replaying the paper's table on the paper's synthetic workload.

use anyhow::Result;
use avsg::device::params::{Lifetime, Params};
use avsg::device::share::sharers;
use avsg_cli::synth::{CONTEXT, Synth};
use avsg_cli::trace::Trace;
use avsg_linker::ascend::cost::{Unit, Work};

use super::constants::{Constants, Name, Start};
use super::count::{Counts, Profile, count};
use super::phase::{PHASES, Phase};
use super::stage_two;
use avsg_linker::ascend::soc::OF_THE_PAPER;

/// Share of a step's ids that the previous step selected too, in the paper's workload.
const GAMMA: f64 = 0.8;
/// Mean share of the other ids that an earlier step selected.
const MU: f64 = 0.5;

/// The quantity of a figure of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// The vectorised Stage One.
    StageOne,
    /// Both stages in one kernel, for one request.
    Kernel,
    /// The scalar match with two pointers.
    DualPointer,
}

/// One figure of the paper.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The quantity.
    pub quantity: Quantity,
    /// K, the number of ids per token.
    pub k: usize,
    /// S, the number of slots.
    pub slots: u32,
    /// The figure in microseconds.
    pub us: f64,
}

/// The figures that the paper states.
pub const POINTS: [Point; 6] = [
    Point { quantity: Quantity::StageOne, k: 256, slots: 256, us: 38.2 },
    Point { quantity: Quantity::StageOne, k: 2048, slots: 2048, us: 53.7 },
    Point { quantity: Quantity::StageOne, k: 512, slots: 8192, us: 61.9 },
    Point { quantity: Quantity::Kernel, k: 2048, slots: 8192, us: 101.27 },
    Point { quantity: Quantity::DualPointer, k: 256, slots: 256, us: 20.8 },
    Point { quantity: Quantity::DualPointer, k: 2048, slots: 2048, us: 150.0 },
];

/// Number of steps that fill the buffer, and number of counted steps.
const STEPS: [usize; 2] = [24, 8];

/// Returns the profiles of the paper's table and of the operator's own at a point, on the paper's
/// workload.
pub fn profiles(point: &Point) -> Result<[Profile; 2]> {
    let [warm, counted] = STEPS;
    let trace = workload(point.k, warm + counted)?;
    let ours = wide(point.k, point.slots);
    let baseline = count(&Params::paper(ours.k, 1, ours.slots), &trace, warm, 1, &|| ())?;
    let sharers = sharers(1, point.k, OF_THE_PAPER.cores as usize);
    Ok([baseline, count(&ours, &trace, warm, sharers, &|| ())?])
}

/// Returns the operator's own geometry for a K and an S of the paper: two links per slot, and constant
/// lifetimes, which are the cheapest to refresh.
fn wide(k: usize, slots: u32) -> Params {
    let lifetime = Lifetime::Constant(127);
    let k = u32::try_from(k).unwrap_or(u32::MAX);
    Params { spread: 2, retries: 7, lifetime, ..Params::wide(k, 1, slots) }
}

/// Generates the paper's workload.
pub fn workload(k: usize, steps: usize) -> Result<Trace> {
    let trace = Synth { gamma: GAMMA, mu: MU, k, steps, seed: 1, context: CONTEXT }.trace()?;
    Ok(trace)
}

/// Returns the work of the paper's Stage One by phase. The last phase contains the transfers of the
/// table, the ids and the results.
pub fn kernel(p: &Params, n: &Counts, c: &Constants) -> [Work; PHASES.len()] {
    let (k, s, links) = (p.k as usize, p.slots as usize, p.retries as usize + 1);
    let misses = n.misses.ceil() as usize;
    let sync = Work::of(Unit::Syncs, 1.0);
    let scalars = |n: f64| Work::of(Unit::Scalars, n) + sync * 2.0;
    let dma = |bytes: usize, waits: f64| {
        Work::of(Unit::Dmas, 1.0)
            + Work::of(Unit::Bytes, bytes as f64)
            + Work::of(Unit::Waits, waits)
            + sync
    };
    let barriers = |n: f64| Work::of(Unit::Barriers, n);
    // `hash` is both hashes and the test for padding. `link` is, for one link of each id: its position
    // and byte offset, the slot and its offset, the compare, and for the result one op and a Select.
    // Hits and misses are compacted after the first link.
    let hash = Work::chain(7 + 3, k);
    let link = Work::chain(7, k) + barriers(1.0) + Work::select(k) + Work::gathers(2, k);
    let compactions = (barriers(1.0) + Work::compaction(k)) * 4.0;
    let decay = Work::chain(1, 2 * s) * c.get(Name::PaperDecay);
    let mut work = [Work::default(); PHASES.len()];
    work[Phase::Prologue as usize] = decay;
    work[Phase::Probe as usize] = hash + link + compactions + sync * 2.0;
    work[Phase::Rounds as usize] = link * (links - 1) as f64;
    // The words of the hits are gathered and updated as vectors, and then written one by one.
    work[Phase::Refresh as usize] =
        Work::chain(4, k) + Work::gathers(1, k) + scalars(n.hits * c.get(Name::PaperRefresh));
    // The q of all entries are extracted with GatherMask. Each round is a sign, a compare, a compaction
    // and a test of the count, and is followed by a decay if there are too few dead entries.
    let round = Work::chain(2, s) + barriers(1.0) + Work::compaction(s) + sync * 2.0;
    work[Phase::CollectDead as usize] =
        barriers(1.0) + Work::compaction(2 * s) + round * (n.decays + 1.0) + decay * n.decays;
    // A search for a link is: position and offset, the invalid bit, slot and offset, sign, both tests
    // and their disjunction, and for the result two ops and a Select.
    let seek =
        Work::chain(11, misses) + barriers(1.0) + Work::select(misses) + Work::gathers(2, misses);
    work[Phase::UpdateState as usize] =
        seek * links as f64 + Work::chain(4, misses) + scalars(n.misses * c.get(Name::PaperMiss));
    let lists = dma(4 * misses, 0.0) * 3.0 + dma(4 * k, 0.0);
    work[Phase::Publish as usize] = dma(4 * k, 1.0) + dma(8 * s, 1.0) + dma(8 * s, 1.0) + lists;
    work
}

/// Returns the work of the scalar merge of two sorted lists. The sort is not counted, because it is
/// small compared with the merge.
fn dual_pointer(k: usize, c: &Constants) -> Work {
    // An id that is in both lists takes one step.
    let steps = k as f64 * (2.0 - GAMMA);
    Work::of(Unit::Scalars, steps * c.get(Name::DualPointer))
}

/// Returns the microseconds of the scalar merge on the paper's chip.
pub fn dual_pointer_us(k: usize, c: &Constants) -> f64 {
    c.start_us(Start::OneCore) + OF_THE_PAPER.us(dual_pointer(k, c).cycles(&c.prices()))
}

/// Returns the modelled microseconds of the paper's kernel at a point, on the paper's chip. A Stage One
/// of its own starts one core, and the whole kernel starts all of them.
pub fn model_us(point: &Point, baseline: &Profile, c: &Constants) -> f64 {
    let stage_one = kernel(&baseline.params, &baseline.counts, c).into_iter().sum::<Work>();
    let us = OF_THE_PAPER.us(stage_one.cycles(&c.prices()));
    if point.quantity != Quantity::Kernel {
        return c.start_us(Start::OneCore) + us;
    }
    let copy = stage_two::us(c, &OF_THE_PAPER, baseline.counts.misses, &[1152]);
    c.start_us(Start::AllCores) + us + c.get(Name::Syncall) + copy
}
