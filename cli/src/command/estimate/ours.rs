//! Our kernel in the model, and what it would take without one or another of its ideas.

use avsg::device::batched::Batched;
use avsg::device::params::{Lifetime, Params};
use avsg::device::share::{PIECES, sharers};
use avsg_linker::ascendc::kernels::defers;
use avsg_linker::cost::{Unit, Work};

use super::constants::{Constants, Name};
use super::count::{How, Profile};
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
    /// Where there are cores for it, several probe for a request.
    pub sharing: bool,
}

impl Variant {
    /// The kernel as it is emitted.
    pub const EMITTED: Self =
        Self { compaction: true, deferral: true, narrow: true, sharing: true };
    /// The same on a core that shares with nobody.
    pub const ALONE: Self = Self { sharing: false, ..Self::EMITTED };
    /// As emitted, all refreshes before victims are chosen.
    pub const AT_ONCE: Self = Self { deferral: false, ..Self::EMITTED };
}

/// A kernel's work on one core for one request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// By phase.
    pub phases: [Work; PHASES.len()],
    /// The table into UB and back.
    pub table: Work,
    /// The table into UB, where all sharers read it at once: by how much the slowest takes longer.
    pub crowd: Work,
    /// Whether cores meet before Stage One's end.
    pub meets: bool,
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
        let own = soc.us(self.stage_one().cycles(&c.prices()));
        c.get(Name::Launch) + self.meeting_us(soc, c) + own
    }

    /// Microseconds that sharers wait for each other, and longer for the table.
    pub fn meeting_us(&self, soc: &Soc, c: &Constants) -> f64 {
        let crowd = (c.get(Name::Crowd) - 1.0) * self.crowd.cycles(&c.prices());
        if self.meets { c.get(Name::Syncall) + soc.us(crowd) } else { 0.0 }
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
    let shared = variant.sharing
        && variant.deferral
        && profile.sharers > 1
        && profile.sharers == sharers(requests, profile.params.k as usize, cores);
    let deferral = variant.deferral && defers(&profile.params);
    let how = match (deferral, shared) {
        (false, _) => How::AtOnce,
        (true, false) => How::Late,
        (true, true) => How::Shared,
    };
    let mut phases = work[how as usize];
    if !variant.compaction && !shared {
        phases[Phase::Rounds as usize] = profile.all_lanes;
    }
    let deferred = if deferral { late(profile, variant, requests, cores) } else { Work::default() };
    let table = table(&profile.params, variant.narrow);
    let crowd = crowd(&profile.params, profile.sharers);
    Cost { phases, table, crowd, meets: shared, deferred }
}

/// What the busiest core has to do with the refreshes that waited, as `avsg_late.h.in` deals them.
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

/// Bytes of the table that other cores read at the same time: all of the header and of the lifetimes, and of ids and
/// links, which sharers read by pieces in turn, as much as of the others are at the same piece.
fn crowd(p: &Params, sharers: usize) -> Work {
    let at_once = (sharers.div_ceil(PIECES) - 1) as f64 / (sharers.max(2) - 1) as f64;
    let (all, turns) = (p.slots as usize + 128, 4 * (p.slots + p.links()) as usize);
    Work::of(Unit::Bytes, all as f64 + at_once * turns as f64)
}

/// Ids, lifetimes and links by DMA, both ways; lifetimes turned from bytes to halfs and back.
fn table(p: &Params, narrow: bool) -> Work {
    let (slots, links) = (p.slots as usize, p.links() as usize);
    let life = if narrow { slots + 64 } else { 0 };
    let bytes = (64 + 4 * slots + life + 4 * links) as f64;
    let dmas = if narrow { 4.0 } else { 3.0 };
    let pieces = if Batched::serves(p) { PIECES as f64 - 1.0 } else { 0.0 };
    let way = Work::of(Unit::Bytes, bytes)
        + Work::of(Unit::Dmas, dmas)
        + Work::of(Unit::Waits, 1.0)
        + Work::of(Unit::Syncs, 2.0);
    let cast = if narrow { Work::vector(1, slots.div_ceil(2)) } else { Work::default() };
    // Ids and links come in pieces.
    (way + cast) * 2.0 + Work::of(Unit::Dmas, 2.0 * pieces)
}
