//! The constants of the model, with their sources and ranges.
//!
//! A source says "measured" or "documented" and names a public source, "fit" if the value was fitted to
//! figures of the paper, or "assumed" if only its range is known. No constant was fitted to the paper's
//! figures of its vectorised kernel: a coordinate descent on their squared errors drives nearly every
//! constant to an end of its range and still leaves errors of -28, +37, -53 and -27 %. The model lacks
//! about 20 us at any size and 5 ns per slot of the paper's kernel. No constant was chosen by its effect
//! on the operator's own kernel.

use anyhow::Result;
use avsg::Error;
use avsg_linker::cost::{Prices, Unit};

/// A constant of the model.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    /// Name on the command line.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: &'static str,
    /// The value unless `--set` replaces it.
    pub default: f64,
    /// The smallest value that the source allows.
    pub lo: f64,
    /// The largest value that the source allows.
    pub hi: f64,
    /// The meaning of the constant, and its source.
    pub source: &'static str,
}

/// The names of the constants, in the order of [`CONSTANTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Head,
    Barrier,
    Repeat,
    Gather,
    Scalar,
    Sync,
    Dma,
    Latency,
    Bandwidth,
    Crowd,
    Syncall,
    Launch,
    H2dStart,
    H2dRow,
    H2dLink,
    PaperRefresh,
    PaperMiss,
    PaperDecay,
    DualPointer,
}

const fn constant(
    (name, unit): (&'static str, &'static str),
    [default, lo, hi]: [f64; 3],
    source: &'static str,
) -> Constant {
    Constant { name, unit, default, lo, hi, source }
}

/// All constants.
pub const CONSTANTS: [Constant; 19] = [
    constant(
        ("head", "cycles"),
        [24.0, 20.0, 30.0],
        "start of a vector op, before its repeats; measured, Add of 4096 floats (bank_conflict_ub)",
    ),
    constant(
        ("barrier", "cycles"),
        [20.0, 0.0, 60.0],
        "wait between two dependent vector ops (PipeBarrier<PIPE_V>); assumed",
    ),
    constant(
        ("repeat", "cycles"),
        [1.0, 1.0, 2.0],
        "one repeat of a vector op, 64 words; 2 if every repeat has a bank conflict; measured (bank_conflict_ub)",
    ),
    constant(
        ("gather", "words/cycle"),
        [1.0, 0.5, 4.0],
        "rate at which Gather reads; assumed, as no figure is public (64 lanes on 16 bank groups)",
    ),
    constant(
        ("scalar", "cycles"),
        [9.5, 8.0, 11.0],
        "one GetValue or SetValue in UB with its share of the loop; measured (add_high_performance)",
    ),
    constant(
        ("sync", "cycles"),
        [40.0, 10.0, 150.0],
        "SetFlag and WaitFlag between two pipes; assumed",
    ),
    constant(
        ("dma", "cycles"),
        [21.0, 10.0, 30.0],
        "issue of one DataCopy; measured as an upper bound, 11.1 ns (data_copy, scenario 1)",
    ),
    constant(
        ("latency", "cycles"),
        [700.0, 300.0, 1500.0],
        "time from the issue of a DataCopy to its flag, counted if a pipe waits for the flag; assumed",
    ),
    constant(
        ("bandwidth", "B/cycle"),
        [32.0, 20.0, 64.0],
        "bandwidth of one core between GM and UB; documented (platform .ini: HBM 32, UB to GM 64; all cores 20)",
    ),
    constant(
        ("crowd", "factor"),
        [1.64, 1.0, 1.64],
        "factor on the time to read a table into UB if all cores read the same one; measured, the largest (data_copy, scenario 7)",
    ),
    constant(("syncall", "us"), [1.0, 0.5, 5.0], "one SyncAll over all cores; assumed"),
    constant(
        ("launch", "us"),
        [2.3, 0.0, 5.0],
        "launch of a kernel; assumed, the paper's dual-pointer times (20.8 us at K=256, 150 at 2048) extrapolated to K=0",
    ),
    constant(
        ("h2d-start", "us"),
        [3.0, 2.0, 5.0],
        "time before a core's first host row; fit to the paper's H2D table, 40 cores",
    ),
    constant(
        ("h2d-row", "us"),
        [0.42, 0.3, 0.6],
        "time per host row of 1152 bytes and core; fit to the paper's H2D table",
    ),
    constant(
        ("h2d-link", "GB/s"),
        [105.0, 90.0, 115.0],
        "bandwidth of the host link for all cores; fit to the paper's H2D table (110 measured by vllm-ascend)",
    ),
    constant(
        ("paper-refresh", "accesses"),
        [2.0, 2.0, 3.0],
        "scalar accesses to UB per hit that the paper's kernel refreshes: slot and word read at once, word written; assumed",
    ),
    constant(
        ("paper-miss", "accesses"),
        [8.0, 6.0, 12.0],
        "scalar accesses to UB per miss in the paper's kernel: 2 pairs read; id, slot, lifetime and link written; assumed",
    ),
    constant(
        ("paper-decay", "ops"),
        [2.0, 1.0, 4.0],
        "vector ops over the packed words per decay of the paper's kernel: subtract, clamp the field; assumed",
    ),
    constant(
        ("dual-pointer", "accesses"),
        [11.0, 4.0, 14.0],
        "scalar accesses to UB per step of the scalar merge; fit to the 72 ns per id between the paper's two figures",
    ),
];

/// The value of every constant, in the order of [`CONSTANTS`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants([f64; CONSTANTS.len()]);

impl Default for Constants {
    fn default() -> Self {
        Self(CONSTANTS.map(|c| c.default))
    }
}

impl Constants {
    /// Returns the value of a constant.
    pub fn get(&self, name: Name) -> f64 {
        self.0[name as usize]
    }

    /// Returns the value of the constant `CONSTANTS[index]`.
    pub fn at(&self, index: usize) -> f64 {
        self.0[index]
    }

    /// Replaces the rate of Gather, in words per cycle.
    pub fn with_gather(mut self, rate: f64) -> Self {
        self.0[Name::Gather as usize] = rate;
        self
    }

    /// Replaces the value that a `--set NAME=VALUE` names.
    pub fn with(mut self, setting: &str) -> Result<Self> {
        let bad = |limit: &str| {
            Error::invalid(
                "--set",
                setting,
                limit,
                "for example gather=0.5; --constants lists them",
            )
        };
        let Some((name, value)) = setting.split_once('=') else {
            return Err(bad("it must be NAME=VALUE").into());
        };
        let Some(at) = CONSTANTS.iter().position(|c| c.name == name.trim()) else {
            return Err(bad("no constant has that name").into());
        };
        let value: f64 = value.trim().parse().map_err(|_| bad("the value must be a number"))?;
        // A measured value may be outside of the range, so only impossible values are refused.
        let least = if CONSTANTS[at].lo > 0.0 { f64::MIN_POSITIVE } else { 0.0 };
        if !value.is_finite() || value < least {
            return Err(bad("the value must be finite and positive").into());
        }
        self.0[at] = value;
        Ok(self)
    }

    /// Returns the cycles per unit of work.
    pub fn prices(&self) -> Prices {
        let mut prices = Prices::default();
        for (unit, cycles) in [
            (Unit::Ops, self.get(Name::Head)),
            (Unit::Barriers, self.get(Name::Barrier)),
            (Unit::Repeats, self.get(Name::Repeat)),
            (Unit::Gathers, 1.0 / self.get(Name::Gather)),
            (Unit::Scalars, self.get(Name::Scalar)),
            (Unit::Syncs, self.get(Name::Sync)),
            (Unit::Dmas, self.get(Name::Dma)),
            (Unit::Waits, self.get(Name::Latency)),
            (Unit::Bytes, 1.0 / self.get(Name::Bandwidth)),
        ] {
            prices[unit as usize] = cycles;
        }
        prices
    }
}

#[cfg(test)]
mod tests {
    use avsg_linker::cost::{UNITS, Work};

    use super::*;

    #[test]
    fn names_and_table_have_the_same_order() {
        let c = Constants::default();
        for (name, text) in [
            (Name::Head, "head"),
            (Name::Gather, "gather"),
            (Name::Launch, "launch"),
            (Name::H2dLink, "h2d-link"),
            (Name::DualPointer, "dual-pointer"),
        ] {
            assert_eq!(CONSTANTS[name as usize].name, text);
        }
        assert_eq!(c.with("gather = 0.5").unwrap().get(Name::Gather), 0.5);
        assert_eq!(c.with("barrier=0").unwrap().get(Name::Barrier), 0.0);
        assert!(CONSTANTS.iter().all(|k| (k.lo..=k.hi).contains(&k.default)));
        for bad in ["gather", "gather=", "gather=0", "gather=nan", "nothing=1", "=1"] {
            assert!(c.with(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_slow_end_of_each_range_raises_the_price_of_one_unit_only() {
        let c = Constants::default();
        let price = |c: &Constants| UNITS.map(|u| Work::of(u.0, 1.0).cycles(&c.prices()));
        assert!(price(&c).iter().all(|&p| p > 0.0));
        for slow in [
            "head=30",
            "barrier=60",
            "repeat=2",
            "gather=0.5",
            "scalar=11",
            "sync=150",
            "dma=30",
            "latency=1500",
            "bandwidth=20",
        ] {
            let pairs = price(&c.with(slow).unwrap()).into_iter().zip(price(&c));
            let dearer = pairs.clone().filter(|(slow, base)| slow > base).count();
            assert!(dearer == 1 && pairs.filter(|(s, b)| s < b).count() == 0, "{slow}");
        }
    }
}
