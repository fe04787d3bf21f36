//! The constants of the model, with their sources and ranges.
//!
//! A constant that is documented cites the document and its section, and has no range. Every other one
//! has a range: it is measured by others in one setting, fitted to figures of the paper ("fit"), or
//! assumed. No constant was fitted to the paper's figures of its vectorised kernel: a coordinate descent
//! on their squared errors drives nearly every constant to an end of its range and still leaves large
//! errors. No constant was chosen by its effect on the operator's own kernel.

use anyhow::Result;
use avsg::Error;
use avsg_linker::ascend::soc::Soc;
use avsg_sim::cycles::Prices;

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
    /// The largest value that the source allows; `lo` if the value is documented.
    pub hi: f64,
    /// The meaning of the constant, and what its range rests on.
    pub source: &'static str,
    /// The document and section that state the value or its bounds.
    pub document: Option<&'static str>,
}

/// The names of the constants, in the order of [`CONSTANTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Issue,
    Head,
    Barrier,
    Repeat,
    Compact,
    Gather,
    Scalar,
    Sync,
    Dma,
    Latency,
    Bandwidth,
    Syncall,
    Fetch,
    Call,
    LaunchAll,
    Launch,
    H2dStart,
    H2dRow,
    H2dLink,
    DualPointer,
}

/// Returns a constant without a document.
const fn constant(
    (name, unit): (&'static str, &'static str),
    [default, lo, hi]: [f64; 3],
    source: &'static str,
) -> Constant {
    Constant { name, unit, default, lo, hi, source, document: None }
}

impl Constant {
    /// Cites the document and section that state the constant or its bounds. All documents but the platform
    /// file are in the public repository asc-devkit.
    const fn cited(self, document: &'static str) -> Self {
        Self { document: Some(document), ..self }
    }
}

/// All constants.
pub const CONSTANTS: [Constant; 20] = [
    constant(
        ("issue", "cycles"),
        [5.0, 1.0, 20.0],
        "the scalar unit issues an instruction, a flag or a barrier; assumed, a call with a count sets the mask \
         and its mode before the instruction and restores them after it",
    ),
    constant(
        ("head", "cycles"),
        [24.0, 20.0, 30.0],
        "start of a vector op, before its repeats; measured, Add of 4096 floats",
    )
    .cited(
        "asc-devkit, examples, 05_best_practices/04_memory_access/bank_conflict_ub, README",
    ),
    constant(
        ("barrier", "cycles"),
        [20.0, 0.0, 60.0],
        "PipeBarrier, after its pipes are idle; assumed",
    ),
    constant(
        ("repeat", "cycles"),
        [1.0, 1.0, 2.0],
        "one repeat of a vector op, 64 words or 128 halves; documented as 1; 2 was measured where \
         every repeat has a bank conflict, which the model does not look for",
    )
    .cited(
        "asc-devkit, docs/zh/api, appendix Vector指令理论性能汇总 (theoretical rates of vector instructions), \
     tables 6 to 10 and 13; examples, bank_conflict_ub",
    ),
    constant(
        ("compact", "words/cycle"),
        [32.0, 32.0, 32.0],
        "rate at which GatherMask reads words, and twice as many halves; documented",
    )
    .cited(
        "asc-devkit, docs/zh/api, appendix Vector指令理论性能汇总 (theoretical rates of vector instructions), \
     table 9 (compare and select)",
    ),
    constant(
        ("gather", "elements/cycle"),
        [5.0, 5.0, 5.0],
        "rate at which Gather reads elements of any type; documented",
    )
    .cited(
        "asc-devkit, docs/zh/api, appendix Vector指令理论性能汇总 (theoretical rates of vector instructions), \
     table 15 (scatter and gather)",
    ),
    constant(
        ("scalar", "cycles"),
        [9.5, 8.0, 11.0],
        "one GetValue or SetValue in UB with its share of the loop; measured",
    )
    .cited(
        "asc-devkit, examples, 05_best_practices/00_vector_compute/add_high_performance, case 0",
    ),
    constant(
        ("sync", "cycles"),
        [40.0, 10.0, 150.0],
        "from the end of the work before SetFlag to the start of the work after WaitFlag; assumed",
    ),
    constant(
        ("dma", "cycles"),
        [21.0, 10.0, 30.0],
        "start of one DataCopy on its pipe; measured as an upper bound, 11.1 ns",
    )
    .cited(
        "asc-devkit, examples, 05_best_practices/04_memory_access/data_copy, scenario 1",
    ),
    constant(
        ("latency", "cycles"),
        [700.0, 300.0, 1500.0],
        "from the end of a DataCopy on its pipe to the flag behind it, in both directions; assumed",
    ),
    constant(
        ("bandwidth", "B/cycle"),
        [32.0, 20.0, 64.0],
        "bandwidth of one core between GM and UB; documented as 32 for HBM and 64 from UB, and 20 is \
         a core's share if all cores copy; it is assumed which of them a table has",
    )
    .cited(
        "CANN 8.1.RC1, platform_config/Ascend910B3.ini, section AICoreMemoryRates",
    ),
    constant(("syncall", "us"), [1.0, 0.5, 5.0], "one SyncAll over all cores; assumed"),
    constant(
        ("fetch", "cycles"),
        [50.0, 10.0, 300.0],
        "the scalar unit waits for 128 bytes of instructions that are not in the cache; assumed, the low end is a 16th \
         of a load of 2 KB, the unit that one document names, in 160 cycles, and the high end a line alone in the \
         least time that a DMA is taken to need; which of them a core loads is not documented",
    )
    .cited(
        "asc-devkit, docs/zh/guide, 基本架构 (architecture), Scalar, and 缓存一致性 (coherence), caches of NPU 2201",
    ),
    constant(
        ("call", "cycles"),
        [10.0, 4.0, 40.0],
        "a call of a function and the return from it; assumed, two jumps at the low end, and at the high end the \
         registers that a function saves in the cache of the stack too",
    ),
    constant(
        ("launch-all", "us"),
        [20.5, 3.0, 21.0],
        "start of a kernel on all cores; documented to grow with the cores to 20 or 21 us, while the paper's \
         H2D table leaves 3 us on 40 cores",
    )
    .cited(
        "asc-devkit, docs/zh/guide, 分析性能数据 (analysis of performance data), method 4, and \
     设置合适的核数和算子Kernel类型 (number of cores and kernel type), figure 1",
    ),
    constant(
        ("launch", "us"),
        [2.3, 0.0, 5.0],
        "start of a kernel on one core; assumed, the paper's dual-pointer times (20.8 us at K=256, 150 at 2048) extrapolated to K=0",
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

    /// Returns the constants with another value for the constant `CONSTANTS[index]`.
    pub fn with_at(mut self, index: usize, value: f64) -> Self {
        self.0[index] = value;
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

    /// Returns the prices of the clocks on a chip.
    pub fn prices(&self, soc: &Soc) -> Prices {
        Prices {
            issue: self.get(Name::Issue),
            scalar: self.get(Name::Scalar),
            head: self.get(Name::Head),
            repeat: self.get(Name::Repeat),
            // 256 bytes are 64 words.
            compact: 64.0 / self.get(Name::Compact),
            gather: 1.0 / self.get(Name::Gather),
            barrier: self.get(Name::Barrier),
            flag: self.get(Name::Sync),
            sync_all: self.get(Name::Syncall) * f64::from(soc.mhz),
            dma: self.get(Name::Dma),
            latency: self.get(Name::Latency),
            byte: 1.0 / self.get(Name::Bandwidth),
            fetch: self.get(Name::Fetch),
            call: self.get(Name::Call),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_table_have_the_same_order() {
        let c = Constants::default();
        for (name, text) in [
            (Name::Head, "head"),
            (Name::Compact, "compact"),
            (Name::Gather, "gather"),
            (Name::Launch, "launch"),
            (Name::LaunchAll, "launch-all"),
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
}
