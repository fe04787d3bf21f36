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
    /// The kernel as it is emitted.
    pub const EMITTED: Self = Self { compaction: true, deferral: true, narrow: true };
    /// The same, all refreshes before victims are chosen.
    pub const AT_ONCE: Self = Self { deferral: false, ..Self::EMITTED };
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

/// The cost of a variant, for one request of so many on so many cores.
pub fn cost(profile: &Profile, variant: Variant, requests: usize, cores: usize) -> Cost {
    let work = &profile.work[usize::from(!variant.narrow)];
    let mut phases = work[usize::from(variant.deferral)];
    if !variant.compaction {
        phases[Phase::Rounds as usize] = profile.all_lanes;
    }
    let deferred =
        if variant.deferral { late(profile, variant, requests, cores) } else { Work::default() };
    Cost { phases, table: table(&profile.params, variant.narrow), deferred }
}

/// What the busiest core has to do with the refreshes that waited, as `write/ascendc/avsg_late.h.in` deals them.
fn late(profile: &Profile, variant: Variant, requests: usize, cores: usize) -> Work {
    let (p, n) = (&profile.params, &profile.counts);
    let most = p.slot_bits().min(13);
    let parts = |shift: u32| (p.slots >> shift) as usize;
    let shift = (6..most).find(|&shift| requests * parts(shift) <= cores).unwrap_or(most);
    let units = (requests * parts(shift)).div_ceil(cores) as f64;
    // The slot read, the byte written; in between what the next lifetime is of, or the word around it.
    let reads = match p.lifetime {
        Lifetime::Constant(_) if variant.narrow => 2.0,
        Lifetime::Constant(_) => 3.0,
        Lifetime::Frequency(_) => 4.0,
    };
    let set = (n.hits + n.misses) / parts(shift) as f64;
    let (k, part) = (p.k as usize, if variant.narrow { 1 } else { 4 } << shift);
    let once = Work::of(Unit::Bytes, (4 * k + 2 * part) as f64)
        + Work::of(Unit::Dmas, 3.0)
        + Work::of(Unit::Waits, 1.0)
        + Work::of(Unit::Syncs, 4.0)
        + Work::chain(3, k)
        + Work::of(Unit::Scalars, reads * set);
    once * units
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
