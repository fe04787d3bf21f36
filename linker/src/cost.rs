//! What a kernel takes on a 910B: a model, not a measurement.
//!
//! [`Work`] counts what the machine does in units that cost alike: vector ops, their repeats, gathered
//! words, scalar accesses, barriers, flags, DMAs. [`calls`] says how much work the calls are that an op of
//! the tape was lowered to, a replay how often and on how many lanes, and [`Prices`] turn it into cycles. Work is linear, so one replay serves every set of prices. All work of a core is
//! added up: no overlap of pipes is assumed, for nobody's kernel.

pub mod calls;
pub mod setting;

use std::ops::{Add, AddAssign, Mul};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Vector ops: their heads.
    Ops,
    /// Barriers between vector ops.
    Barriers,
    /// Repeats of 64 words.
    Repeats,
    /// Gathered words.
    Gathers,
    /// Scalar accesses to UB.
    Scalars,
    /// Flags between pipes.
    Syncs,
    /// DMAs.
    Dmas,
    /// DMAs that something waits for.
    Waits,
    /// Bytes between GM and UB.
    Bytes,
}

/// The units, with their names.
pub const UNITS: [(Unit, &str); 9] = [
    (Unit::Ops, "vector op heads"),
    (Unit::Barriers, "vector barriers"),
    (Unit::Repeats, "vector repeats"),
    (Unit::Gathers, "gathers"),
    (Unit::Scalars, "scalar UB accesses"),
    (Unit::Syncs, "flags"),
    (Unit::Dmas, "DMA issue"),
    (Unit::Waits, "DMA latency"),
    (Unit::Bytes, "DMA bytes"),
];

/// Cycles of each unit.
pub type Prices = [f64; UNITS.len()];

/// How much of each unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work(Prices);

impl Work {
    /// So much of one unit.
    pub fn of(unit: Unit, n: f64) -> Self {
        let mut work = Self::default();
        work.0[unit as usize] = n;
        work
    }

    /// `ops` vector ops over `lanes` words each.
    pub fn vector(ops: usize, lanes: usize) -> Self {
        let repeats = (ops * lanes.div_ceil(64)) as f64;
        Self::of(Unit::Ops, ops as f64) + Self::of(Unit::Repeats, repeats)
    }

    /// The same, each behind a barrier.
    pub fn chain(ops: usize, lanes: usize) -> Self {
        Self::vector(ops, lanes) + Self::of(Unit::Barriers, ops as f64)
    }

    /// `ops` gathers of `lanes` words each, each behind a barrier.
    pub fn gathers(ops: usize, lanes: usize) -> Self {
        Self::chain(ops, 0) + Self::of(Unit::Gathers, (ops * lanes) as f64)
    }

    /// So much of one unit is in it.
    pub fn get(&self, unit: Unit) -> f64 {
        self.0[unit as usize]
    }

    /// Cycles, unit by unit.
    pub fn terms(&self, prices: &Prices) -> Prices {
        std::array::from_fn(|unit| self.0[unit] * prices[unit])
    }

    /// Cycles.
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
