//! Models the time of a kernel on a 910B. The figures are computed and not measured.
//!
//! [`Work`] counts units of equal cost: vector instructions, their repeats, repeats of GatherMask,
//! gathered elements, scalar accesses, barriers, flags and DMAs. [`calls`] returns the work of the
//! calls that an operation of the tape was lowered to, a replay gives the number of executions and
//! of lanes, and [`Prices`] turn work into cycles. Work is linear, so one replay serves every set of prices. The work of all
//! pipes of a core is added up, for every kernel: no overlap is assumed.

pub mod calls;
pub mod setting;

use std::ops::{Add, AddAssign, Mul};

/// A unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Vector instructions, without their repeats.
    Ops,
    /// Barriers between vector instructions.
    Barriers,
    /// Repeats of vector instructions, of 64 words or 128 halves each.
    Repeats,
    /// Repeats of GatherMask, of 64 words or 128 halves each.
    Compactions,
    /// Elements of any type that Gather reads.
    Gathers,
    /// Accesses of the scalar unit to UB.
    Scalars,
    /// Flags between pipes.
    Syncs,
    /// DMAs that are issued.
    Dmas,
    /// DMAs whose latency a unit waits for.
    Waits,
    /// Bytes that DMAs copy between GM and UB.
    Bytes,
}

/// All units, with their names in reports.
pub const UNITS: [(Unit, &str); 10] = [
    (Unit::Ops, "vector op heads"),
    (Unit::Barriers, "vector barriers"),
    (Unit::Repeats, "vector repeats"),
    (Unit::Compactions, "GatherMask repeats"),
    (Unit::Gathers, "gathers"),
    (Unit::Scalars, "scalar UB accesses"),
    (Unit::Syncs, "flags"),
    (Unit::Dmas, "DMA issue"),
    (Unit::Waits, "DMA latency"),
    (Unit::Bytes, "DMA bytes"),
];

/// Cycles per unit, in the order of [`UNITS`].
pub type Prices = [f64; UNITS.len()];

/// Amounts of all units, in the order of [`UNITS`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work(Prices);

impl Work {
    /// Returns `n` of one unit.
    pub fn of(unit: Unit, n: f64) -> Self {
        let mut work = Self::default();
        work.0[unit as usize] = n;
        work
    }

    /// Returns the work of `ops` vector instructions over `lanes` words each.
    pub fn vector(ops: usize, lanes: usize) -> Self {
        let repeats = (ops * lanes.div_ceil(64)) as f64;
        Self::of(Unit::Ops, ops as f64) + Self::of(Unit::Repeats, repeats)
    }

    /// Returns the work of `ops` vector instructions over `lanes` words each, with a barrier before
    /// each.
    pub fn chain(ops: usize, lanes: usize) -> Self {
        Self::vector(ops, lanes) + Self::of(Unit::Barriers, ops as f64)
    }

    /// Returns the work of `ops` gathers of `lanes` words each, with a barrier before each.
    pub fn gathers(ops: usize, lanes: usize) -> Self {
        Self::chain(ops, 0) + Self::of(Unit::Gathers, (ops * lanes) as f64)
    }

    /// Returns the work of one GatherMask over `lanes` words.
    pub fn compaction(lanes: usize) -> Self {
        Self::of(Unit::Ops, 1.0) + Self::of(Unit::Compactions, lanes.div_ceil(64) as f64)
    }

    /// Returns the work of one Select of `lanes` words by a mask in UB. The public implementation
    /// writes the address of the mask to a block, loads it as the mask of the instruction and
    /// selects, with a barrier after each of the three.
    pub fn select(lanes: usize) -> Self {
        Self::vector(1, 8) + Self::vector(1, lanes) + Self::of(Unit::Barriers, 3.0)
    }

    /// Returns the work of one Select between `lanes` words and a scalar, which has no barrier at
    /// its end. See [`Self::select`].
    pub fn select_or_scalar(lanes: usize) -> Self {
        Self::vector(1, 8) + Self::vector(1, lanes) + Self::of(Unit::Barriers, 2.0)
    }

    /// Returns the amount of one unit.
    pub fn get(&self, unit: Unit) -> f64 {
        self.0[unit as usize]
    }

    /// Returns the cycles of each unit.
    pub fn terms(&self, prices: &Prices) -> Prices {
        std::array::from_fn(|unit| self.0[unit] * prices[unit])
    }

    /// Returns the cycles of all units together.
    pub fn cycles(&self, prices: &Prices) -> f64 {
        self.terms(prices).iter().sum()
    }
}

impl Add for Work {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|unit| self.0[unit] + other.0[unit]))
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<f64> for Work {
    type Output = Self;
    fn mul(self, by: f64) -> Self {
        Self(self.0.map(|n| n * by))
    }
}

impl std::iter::Sum for Work {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}
