//! Our kernel in the model, and what it would take without one or another of its ideas.

use avsg::device::params::{Lifetime, Params};
use avsg_linker::cost::{Unit, Work};

use super::constants::{Constants, Name};
use super::count::Profile;
use super::phase::{PHASES, Phase};
use avsg_linker::soc::Soc;

/// Which ideas are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Later rounds of Probe run on what is still pending.
    pub compaction: bool,
    /// Refreshes that cannot change a victim wait until the misses are published.
    pub deferral: bool,
    /// Lifetimes have a column of their own, narrow.
    pub narrow: bool,
}

impl Variant {
    /// The kernel as it is recorded today.
    pub const RECORDED: Self = Self { compaction: true, deferral: false, narrow: true };
    /// With deferral.
    pub const DEFERRED: Self = Self { deferral: true, ..Self::RECORDED };
}

/// A kernel's work on one core for one request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// By phase.
    pub phases: [Work; PHASES.len()],
    /// The table into UB and back.
    pub table: Work,
    /// After the misses are published, beside the copying.
    pub deferred: Work,
}

impl Cost {
    /// All that comes before SyncAll.
    pub fn stage_one(&self) -> Work {
        self.phases.into_iter().sum::<Work>() + self.table
    }

    /// Microseconds of Stage One, launch included.
    pub fn stage_one_us(&self, soc: &Soc, c: &Constants) -> f64 {
        c.get(Name::Launch) + soc.us(self.stage_one().cycles(&c.prices()))
    }

    /// Microseconds of the whole kernel, beside `copy_us` of copying.
    pub fn kernel_us(&self, soc: &Soc, c: &Constants, copy_us: f64) -> f64 {
        let deferred = soc.us(self.deferred.cycles(&c.prices()));
        self.stage_one_us(soc, c) + c.get(Name::Syncall) + copy_us.max(deferred)
    }
}

/// The cost of a variant.
pub fn cost(profile: &Profile, variant: Variant) -> Cost {
    let mut phases = if variant.narrow { profile.work } else { profile.packed };
    if !variant.compaction {
        phases[Phase::Rounds as usize] = profile.all_lanes;
    }
    let mut deferred = Work::default();
    if variant.deferral {
        let n = &profile.counts;
        // The slot read, the byte written; the word in between where it holds more than the byte.
        let accesses = if variant.narrow { 2.0 } else { 3.0 };
        deferred = Work::of(Unit::Scalars, accesses * (n.hits - n.early).max(0.0));
        phases[Phase::Refresh as usize] += deferred * -1.0 + split(profile);
    }
    Cost { phases, table: table(&profile.params, variant.narrow), deferred }
}

/// What it takes to know which refreshes cannot wait: the hits' lifetimes, gathered; how many of them are
/// at or below each threshold that is tried; two lists instead of one.
fn split(profile: &Profile) -> Work {
    let k = profile.params.k as usize;
    let tiles = k.div_ceil(profile.tile as usize);
    let sync = Work::of(Unit::Syncs, 1.0);
    // Frequency lifetimes were gathered to find the next ones.
    let gathered = match profile.params.lifetime {
        Lifetime::Constant(_) => Work::chain(2, k) + Work::gathers(1, k),
        Lifetime::Frequency(_) => Work::default(),
    };
    let count = Work::chain(2, k.div_ceil(2)) + sync;
    let lists = (Work::chain(4, k.div_ceil(tiles)) + sync * 2.0) * tiles as f64;
    gathered + count * profile.counts.counts + lists
}

/// Ids, lifetimes and links by DMA, both ways; lifetimes turned from bytes to halfs and back.
fn table(p: &Params, narrow: bool) -> Work {
    let (slots, links) = (p.slots as usize, p.links() as usize);
    let life = if narrow { slots + 64 } else { 0 };
    let bytes = (64 + 4 * slots + life + 4 * links) as f64;
    let dmas = if narrow { 4.0 } else { 3.0 };
    let way = Work::of(Unit::Bytes, bytes)
        + Work::of(Unit::Dmas, dmas)
        + Work::of(Unit::Waits, 1.0)
        + Work::of(Unit::Syncs, 2.0);
    let cast = if narrow { Work::vector(1, slots.div_ceil(2)) } else { Work::default() };
    (way + cast) * 2.0
}
