//! The operator's own kernel in the model, with and without each of its optimisations.

use avsg::device::batched::Batched;
use avsg::device::params::{Lifetime, Params};
use avsg::device::share::{PLANE_PIECES, sharers};
use avsg_linker::ascend::cost::{Unit, Work};
use avsg_linker::ascend::kernels::defers;

use super::constants::{Constants, Name, Start};
use super::count::{Profile, Schedule};
use super::phase::PHASES;
use avsg_linker::ascend::soc::Soc;

/// A choice of the kernel's optimisations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Refreshes that cannot change a victim run after the misses are published.
    pub deferral: bool,
    /// Lifetimes have a column of bytes instead of bits in the links' words.
    pub narrow: bool,
    /// Several cores probe for one request if the batch leaves enough cores.
    pub sharing: bool,
}

impl Variant {
    /// The kernel as it is emitted.
    pub const EMITTED: Self = Self { deferral: true, narrow: true, sharing: true };
    /// The emitted kernel with one core per request.
    pub const UNSHARED: Self = Self { sharing: false, ..Self::EMITTED };
    /// The emitted kernel with all refreshes before victims are chosen, as a plan in a launch of its
    /// own runs it.
    pub const AT_ONCE: Self = Self { deferral: false, ..Self::EMITTED };
}

/// The work of a kernel on one core for one request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Work by phase.
    pub phases: [Work; PHASES.len()],
    /// Transfer of the table into the unified buffer and back.
    pub table: Work,
    /// Bytes of the table that several sharers read at the same time, which slows the reads down.
    pub crowd: Work,
    /// Whether several cores share a request, and therefore synchronise within Stage One.
    pub shared: bool,
    /// Work after the misses are published, which runs while rows are copied.
    pub deferred: Work,
    /// The cores that the kernel starts.
    pub start: Start,
}

impl Cost {
    /// Returns all work before SyncAll.
    pub fn stage_one(&self) -> Work {
        self.phases.into_iter().sum::<Work>() + self.table
    }

    /// Returns the microseconds of Stage One, the start of the kernel included.
    pub fn stage_one_us(&self, soc: &Soc, c: &Constants) -> f64 {
        c.start_us(self.start) + self.started_us(soc, c)
    }

    /// Returns the microseconds of Stage One once the kernel has started.
    pub fn started_us(&self, soc: &Soc, c: &Constants) -> f64 {
        self.sharing_us(soc, c) + soc.us(self.stage_one().cycles(&c.prices()))
    }

    /// Returns the microseconds that sharing a request costs: the synchronisation of the sharers, and
    /// the slower reads of the table.
    pub fn sharing_us(&self, soc: &Soc, c: &Constants) -> f64 {
        let crowd = (c.get(Name::Crowd) - 1.0) * self.crowd.cycles(&c.prices());
        if self.shared { c.get(Name::Syncall) + soc.us(crowd) } else { 0.0 }
    }

    /// Returns the microseconds of the whole kernel, in which copying takes `copy_us`.
    pub fn kernel_us(&self, soc: &Soc, c: &Constants, copy_us: f64) -> f64 {
        let deferred = soc.us(self.deferred.cycles(&c.prices()));
        self.stage_one_us(soc, c) + c.get(Name::Syncall) + copy_us.max(deferred)
    }
}

/// Returns the cost of a variant for one of `requests` requests, in the kernel of a whole step, which
/// starts all of `cores` cores.
pub fn cost(profile: &Profile, variant: Variant, requests: usize, cores: usize) -> Cost {
    let work = &profile.work[usize::from(!variant.narrow)];
    let shared = variant.sharing
        && variant.deferral
        && profile.sharers > 1
        && profile.sharers == sharers(requests, profile.params.k as usize, cores);
    let deferral = variant.deferral && defers(&profile.params);
    let schedule = match (deferral, shared) {
        (false, _) => Schedule::AtOnce,
        (true, false) => Schedule::Deferred,
        (true, true) => Schedule::Shared,
    };
    let phases = work[schedule as usize];
    let deferred = if deferral {
        deferred_refreshes(profile, variant, requests, cores)
    } else {
        Work::default()
    };
    let table = table(&profile.params, variant.narrow);
    let crowd = crowd(&profile.params, profile.sharers);
    Cost { phases, table, crowd, shared, deferred, start: Start::AllCores }
}

/// Returns the work of the busiest core on the deferred refreshes, which `avsg_late.h` spreads over
/// the cores by parts of the slots.
fn deferred_refreshes(profile: &Profile, variant: Variant, requests: usize, cores: usize) -> Work {
    let (p, n) = (&profile.params, &profile.counts);
    let max_shift = p.slot_bits().min(13);
    let parts = |shift: u32| (p.slots >> shift) as usize;
    let shift = (6..max_shift).find(|&shift| requests * parts(shift) <= cores).unwrap_or(max_shift);
    let units = (requests * parts(shift)).div_ceil(cores) as f64;
    // The slot is read and the byte is written. A frequency lifetime also reads the old byte and the
    // table of new ones, and a packed lifetime reads the word around it.
    let accesses = match p.lifetime {
        Lifetime::Constant(_) if variant.narrow => 2.0,
        Lifetime::Constant(_) => 3.0,
        Lifetime::Frequency(_) => 4.0,
    };
    let refreshes = (n.hits + n.misses) / parts(shift) as f64;
    let (k, part) = (p.k as usize, if variant.narrow { 1 } else { 4 } << shift);
    let per_unit = Work::of(Unit::Bytes, (4 * k + 2 * part) as f64)
        + Work::of(Unit::Dmas, 3.0)
        + Work::of(Unit::Waits, 1.0)
        + Work::of(Unit::Syncs, 4.0)
        + Work::chain(2, k)
        + Work::compaction(k)
        + Work::of(Unit::Scalars, accesses * refreshes);
    per_unit * units
}

/// Returns the bytes of the table that several cores read at the same time. These are the header and
/// the lifetimes, and a share of the ids and links: the sharers read those in pieces, each in another
/// order, and the share is the mean share of the other cores that read the same piece.
fn crowd(p: &Params, sharers: usize) -> Work {
    let same_piece = (sharers.div_ceil(PLANE_PIECES) - 1) as f64 / (sharers.max(2) - 1) as f64;
    let (whole, in_pieces) = (p.slots as usize + 128, 4 * (p.slots + p.links()) as usize);
    Work::of(Unit::Bytes, whole as f64 + same_piece * in_pieces as f64)
}

/// Returns the work of reading and writing ids, lifetimes and links by DMA, and of converting the
/// lifetimes from bytes to halfs and back.
fn table(p: &Params, narrow: bool) -> Work {
    let (slots, links) = (p.slots as usize, p.links() as usize);
    let lifetimes = if narrow { slots + 64 } else { 0 };
    let bytes = (64 + 4 * slots + lifetimes + 4 * links) as f64;
    let dmas = if narrow { 4.0 } else { 3.0 };
    let pieces = if Batched::serves(p) { PLANE_PIECES as f64 - 1.0 } else { 0.0 };
    let one_way = Work::of(Unit::Bytes, bytes)
        + Work::of(Unit::Dmas, dmas)
        + Work::of(Unit::Waits, 1.0)
        + Work::of(Unit::Syncs, 2.0);
    let cast = if narrow { Work::vector(1, slots.div_ceil(2)) } else { Work::default() };
    // Ids and links are read in pieces, each with a DMA of its own.
    (one_way + cast) * 2.0 + Work::of(Unit::Dmas, 2.0 * pieces)
}
