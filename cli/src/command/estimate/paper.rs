//! The paper's own kernel and the scalar merge it replaces, in the units of the model, and the figures
//! that the paper gives for them.
//!
//! Entries are packed 64-bit words, q (lifetime, invalid, print, slot) beside c, so an op on all q runs
//! over 2·S words. Probe examines all R + 1 links of all K ids. How many hits, misses and decays there
//! are is counted by replaying the paper's table on the paper's synthetic workload.

use crate::synth::{CONTEXT, Synth};
use crate::trace::Trace;
use anyhow::Result;
use avsg::device::params::Params;
use avsg::device::share::sharers;
use avsg_linker::cost::{Unit, Work};

use super::constants::{Constants, Name};
use super::count::{Counts, Profile, count};
use super::phase::{PHASES, Phase};
use super::{stage_two, wide};
use avsg_linker::soc::OF_THE_PAPER;

/// Share of a step's ids that the step before selected, in the paper's workload.
const GAMMA: f64 = 0.8;
/// Of the others, the share that was selected before.
const MU: f64 = 0.5;

/// What a figure of the paper is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The vectorised Stage One.
    StageOne,
    /// Both stages in one kernel, one request.
    Kernel,
    /// The scalar dual-pointer match.
    DualPointer,
}

/// One figure of the paper.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Of what.
    pub what: What,
    /// K.
    pub k: usize,
    /// S.
    pub slots: u32,
    /// Microseconds.
    pub us: f64,
}

/// The figures, by the facts page's §7 and the page on peers.
pub const POINTS: [Point; 6] = [
    Point { what: What::StageOne, k: 256, slots: 256, us: 38.2 },
    Point { what: What::StageOne, k: 2048, slots: 2048, us: 53.7 },
    Point { what: What::StageOne, k: 512, slots: 8192, us: 61.9 },
    Point { what: What::Kernel, k: 2048, slots: 8192, us: 101.27 },
    Point { what: What::DualPointer, k: 256, slots: 256, us: 20.8 },
    Point { what: What::DualPointer, k: 2048, slots: 2048, us: 150.0 },
];

/// Steps to fill the buffer, and counted steps.
const STEPS: [usize; 2] = [24, 8];

/// The paper's table and ours at a point, on the paper's workload.
pub fn profiles(point: &Point) -> Result<[Profile; 2]> {
    let [warm, counted] = STEPS;
    let trace = workload(point.k, warm + counted)?;
    let ours = wide(point.k, point.slots);
    let theirs = count(&Params::paper(ours.k, 1, ours.slots), &trace, warm, 1, &|| ())?;
    let sharers = sharers(1, point.k, OF_THE_PAPER.cores as usize);
    Ok([theirs, count(&ours, &trace, warm, sharers, &|| ())?])
}

/// The paper's workload.
pub fn workload(k: usize, steps: usize) -> Result<Trace> {
    let trace = Synth { gamma: GAMMA, mu: MU, k, steps, seed: 1, context: CONTEXT }.trace()?;
    Ok(trace)
}

/// The work of the paper's Stage One by phase; table and ids in, results out are in the last one.
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
    // Both hashes and the test for padding; per link its position, its byte offset, slot and slot's
    // offset, the compare, two for the result; then hits and misses compacted.
    let hash = Work::chain(7 + 3, k);
    let link = Work::chain(8, k) + Work::gathers(2, k);
    let decay = Work::chain(1, 2 * s) * c.get(Name::PaperDecay);
    let mut work = [Work::default(); PHASES.len()];
    work[Phase::Prologue as usize] = decay;
    work[Phase::Probe as usize] = hash + link + Work::chain(4, k) + sync * 2.0;
    work[Phase::Rounds as usize] = link * (links - 1) as f64;
    // The hits' words are gathered and made anew as vectors, then written one by one.
    work[Phase::Refresh as usize] =
        Work::chain(4, k) + Work::gathers(1, k) + scalars(n.hits * c.get(Name::PaperRefresh));
    // The q of all entries, then, until there are enough dead ones: sign, compare, compaction, a look at
    // the count, and a decay.
    let round = Work::chain(3, s) + sync * 2.0;
    work[Phase::CollectDead as usize] =
        Work::chain(1, 2 * s) + round * (n.decays + 1.0) + decay * n.decays;
    // Position and offset, invalid, slot and offset, sign, both tests and their or, three for the result.
    let seek = Work::chain(12, misses) + Work::gathers(2, misses);
    work[Phase::UpdateState as usize] =
        seek * links as f64 + Work::chain(4, misses) + scalars(n.misses * c.get(Name::PaperMiss));
    let lists = dma(4 * misses, 0.0) * 3.0 + dma(4 * k, 0.0);
    work[Phase::Publish as usize] = dma(4 * k, 1.0) + dma(8 * s, 1.0) + dma(8 * s, 1.0) + lists;
    work
}

/// The scalar merge of two sorted lists; the sort is not counted, it is small beside it.
fn dual_pointer(k: usize, c: &Constants) -> Work {
    // Each id that both lists hold is passed once.
    let steps = k as f64 * (2.0 - GAMMA);
    Work::of(Unit::Scalars, steps * c.get(Name::DualPointer))
}

/// Microseconds of the scalar merge, on the paper's chip.
pub fn dual_pointer_us(k: usize, c: &Constants) -> f64 {
    c.get(Name::Launch) + OF_THE_PAPER.us(dual_pointer(k, c).cycles(&c.prices()))
}

/// Microseconds that the model gives for a figure of the paper's kernel, on its chip.
pub fn model_us(point: &Point, theirs: &Profile, c: &Constants) -> f64 {
    let stage_one = kernel(&theirs.params, &theirs.counts, c).into_iter().sum::<Work>();
    let us = c.get(Name::Launch) + OF_THE_PAPER.us(stage_one.cycles(&c.prices()));
    if point.what != What::Kernel {
        return us;
    }
    let copy = stage_two::us(c, &OF_THE_PAPER, theirs.counts.misses, &[1152]);
    us + c.get(Name::Syncall) + copy
}
