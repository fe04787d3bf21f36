//! The report of `avsg doctor`: the constants that follow from its measured times, and the times beside those of the
//! model.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use avsg::Error;
use avsg_cli::command::doctor::clocks;
use avsg_cli::constants::{CONSTANTS, Constants};
use avsg_linker::ascend::soc::{self, Soc};
use serde::{Deserialize, Serialize};

/// A term of a sum: a time of the report, or a constant that an earlier rule gives.
#[derive(Clone, Copy)]
enum Term {
    Time(&'static str),
    Constant(&'static str),
}

/// The form in which a constant follows from a sum of times.
#[derive(Clone, Copy)]
enum Form {
    /// The sum in cycles.
    Cycles,
    /// The sum in microseconds.
    Us,
    /// This number in the sum's cycles.
    PerCycle(f64),
    /// This number of bytes per core in the time of the sum, in GB/s.
    Gigabytes(f64),
}

use Form::{Cycles, Gigabytes, PerCycle, Us};
use Term::{Constant as Of, Time};

/// How a constant follows from times of the report: the terms of a sum with their factors.
type Rule = (&'static str, Form, &'static [(f64, Term)]);

/// The rules of all constants that the report measures. Each is what the clocks make of the repeated work. A rule whose
/// constant the model does not have gives a figure only.
const RULES: [Rule; 19] = [
    ("issue", Cycles, &[(1.0 / 16.0, Time("flags_8"))]),
    ("repeat", Cycles, &[(1.0 / 16.0, Time("vector_32")), (-1.0 / 16.0, Time("vector_16"))]),
    (
        "head",
        Cycles,
        &[
            (1.0 / 7.0, Time("vectors_8_of_16")),
            (-1.0 / 7.0, Time("vector_16")),
            (-16.0, Of("repeat")),
        ],
    ),
    ("barrier", Cycles, &[(1.0, Time("vector_16")), (-1.0, Of("head")), (-16.0, Of("repeat"))]),
    (
        "compact",
        PerCycle(8192.0),
        &[(1.0, Time("compact_8192")), (-1.0, Of("head")), (-1.0, Of("barrier"))],
    ),
    (
        "gather",
        PerCycle(2048.0),
        &[(1.0, Time("gather_2048")), (-1.0, Of("head")), (-1.0, Of("barrier"))],
    ),
    ("scalar", Cycles, &[(1.0 / 16.0, Time("scalars_16")), (-1.0 / 16.0, Of("issue"))]),
    (
        "sync",
        Cycles,
        &[(0.5, Time("round_trip")), (-0.5, Of("head")), (-8.0, Of("repeat")), (-0.5, Of("issue"))],
    ),
    // 31 copies more of 32 bytes, less the time of those bytes: 31 of 32 times 992 more.
    (
        "dma",
        Cycles,
        &[
            (1.0 / 31.0, Time("copies_in_32")),
            (-1.0 / 31.0, Time("copy_in_1")),
            (-1.0 / 992.0, Time("copies_in_32_long")),
            (1.0 / 992.0, Time("copies_in_32")),
        ],
    ),
    (
        "latency",
        Cycles,
        &[
            (32.0 / 31.0, Time("copy_in_1")),
            (-1.0 / 31.0, Time("copies_in_32")),
            (-1.0, Of("issue")),
            (-1.0, Of("sync")),
        ],
    ),
    (
        "bandwidth",
        PerCycle(32.0 * 992.0),
        &[(1.0, Time("copies_in_32_long")), (-1.0, Time("copies_in_32"))],
    ),
    ("syncall", Us, &[(1.0, Time("sync_all")), (-1.0, Of("issue")), (-1.0, Of("barrier"))]),
    ("launch-all", Us, &[(1.0, Time("launch_all")), (-1.0, Of("issue")), (-1.0, Of("barrier"))]),
    ("launch", Us, &[(1.0, Time("launch_1")), (-1.0, Of("issue")), (-1.0, Of("barrier"))]),
    ("h2d-row", Us, &[(1.0 / 27.0, Time("host_rows_28")), (-1.0 / 27.0, Time("host_row_1"))]),
    ("h2d-start", Us, &[(1.0, Time("host_row_1")), (-1.0, Of("h2d-row"))]),
    ("h2d-link", Gigabytes(28.0 * 1152.0), &[(1.0, Time("host_rows_28_all"))]),
    // What a call of a device function takes more than its body.
    ("call", Cycles, &[(1.0 / 8.0, Time("calls_8")), (-1.0 / 8.0, Time("writes_8"))]),
    // What each of 384 lines of 128 bytes takes more in code that the instruction cache cannot hold than in code that
    // it can. The longer code has five barriers less.
    (
        "fetch",
        Cycles,
        &[
            (1.0 / 384.0, Time("code_48_kb")),
            (-6.0 / 384.0, Time("code_8_kb")),
            (5.0 / 384.0, Of("issue")),
        ],
    ),
];

/// The kernels of the operator that doctor times, behind what the names of their times start with.
const KERNELS: [(&str, &str); 4] = [
    ("plan_", "avsg_plan"),
    ("transfer_", "avsg_transfer"),
    ("step_", "avsg_step"),
    ("append", "avsg_append"),
];

/// What `avsg doctor` writes of a time.
#[derive(Deserialize)]
struct Row {
    of: String,
    cores: u32,
    measured: Option<Spread>,
    clocks_us: Option<f64>,
    reason: Option<String>,
}

/// A value with its least and its greatest.
#[derive(Clone, Copy, Deserialize)]
struct Spread {
    us: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize)]
struct Geometry {
    k: u32,
    slots: u32,
}

/// The parts of the report that are read.
#[derive(Deserialize)]
struct Doctor {
    device: String,
    soc: String,
    vector_cores: u32,
    geometry: Geometry,
    times: BTreeMap<String, Row>,
}

/// A constant that the report gives.
#[derive(Clone, Debug, Serialize)]
pub struct Taken {
    pub constant: &'static str,
    pub value: f64,
    /// The least and the greatest value that the measured times allow.
    pub measured_range: [f64; 2],
    pub unit: &'static str,
    /// The value without the report, and its range.
    pub default: f64,
    pub range: [f64; 2],
    /// Whether the two ranges meet.
    pub in_range: bool,
}

/// A figure in cycles that no constant of the model has.
#[derive(Clone, Debug, Serialize)]
pub struct Other {
    pub name: &'static str,
    pub cycles: f64,
    pub measured_range: [f64; 2],
}

/// A constant that keeps its value.
#[derive(Clone, Debug, Serialize)]
pub struct Kept {
    pub constant: &'static str,
    pub value: f64,
    pub unit: &'static str,
    pub reason: String,
}

/// A measured time beside those of the model.
#[derive(Clone, Debug, Serialize)]
pub struct Beside {
    pub time: String,
    pub of: String,
    pub cores: u32,
    pub measured_us: Option<f64>,
    /// The least and the greatest measured time.
    pub measured_range_us: Option<[f64; 2]>,
    /// The time by the constants that the program had which wrote the report.
    pub clocks_us: Option<f64>,
    /// The time by the constants of this estimate, with all code in the instruction cache.
    pub model_us: Option<f64>,
    /// What a kernel of the operator takes longer by them if each line of its code is fetched once.
    pub fetches_us: Option<f64>,
    pub reason: Option<String>,
}

/// What a report of `avsg doctor` says about the model.
pub struct Measured {
    doctor: Doctor,
    /// The chip that was examined.
    pub soc: Soc,
    /// The constants of the model with those of the report.
    pub constants: Constants,
    pub taken: Vec<Taken>,
    pub kept: Vec<Kept>,
    /// What the report gives beside the model's constants.
    pub others: Vec<Other>,
}

impl Measured {
    /// Reads a report.
    ///
    /// # Errors
    /// If the file is no report of a device, or its chip is not known.
    pub fn read(path: &Path) -> Result<Self> {
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).with_context(|| format!("reading {}", name()))?;
        let refused = |limit: String| {
            let remedy = "pass the file that `avsg doctor --json FILE` wrote on a device";
            anyhow!(Error::invalid("--from", name(), limit, remedy))
        };
        let doctor: Doctor = serde_json::from_str(&text)
            .map_err(|error| refused(format!("it is no report of a device: {error}")))?;
        let soc = soc::find(&doctor.soc)
            .ok_or_else(|| refused(format!("its chip {} is not known", doctor.soc)))?;
        let (constants, taken, kept) = apply(&doctor, &soc);
        let others = others(&doctor, &soc);
        Ok(Self { doctor, soc, constants, taken, kept, others })
    }

    /// Returns whether the report is of the simulated device, whose times are those of a model.
    pub fn simulated(&self) -> bool {
        self.doctor.device == "ascend-sim"
    }

    /// Returns each time of the report beside that of the clocks with these constants.
    ///
    /// # Errors
    /// If the report's geometry does not fit a vector core, or there is no C++ compiler.
    pub fn beside(&self, constants: &Constants) -> Result<Vec<Beside>> {
        let Doctor { vector_cores, geometry: Geometry { k, slots }, .. } = self.doctor;
        let model = clocks::times(constants, &self.soc, vector_cores, k, slots)?;
        let mut fetches = Vec::new();
        for (start, kernel) in KERNELS {
            fetches.push((start, clocks::fetches(constants, &self.soc, k, slots, kernel)?));
        }
        let of_kernel = |name: &str| fetches.iter().find(|(start, _)| name.starts_with(start));
        let row = |(name, row): (&String, &Row)| Beside {
            time: name.clone(),
            of: row.of.clone(),
            cores: row.cores,
            measured_us: row.measured.map(|measured| measured.us),
            measured_range_us: row.measured.map(|measured| [measured.low, measured.high]),
            clocks_us: row.clocks_us,
            model_us: model.get(name).copied(),
            fetches_us: of_kernel(name).map(|&(_, us)| us),
            reason: row.reason.clone(),
        };
        Ok(self.doctor.times.iter().map(row).collect())
    }
}

/// Returns the constants with those that the times give, and which these are.
fn apply(doctor: &Doctor, soc: &Soc) -> (Constants, Vec<Taken>, Vec<Kept>) {
    let mut constants = Constants::default();
    let (mut taken, mut kept) = (Vec::new(), Vec::new());
    let mut sums = Sums::new();
    for (at, constant) in CONSTANTS.iter().enumerate() {
        let (name, unit, default) = (constant.name, constant.unit, constant.default);
        let keep = |reason| Kept { constant: name, value: default, unit, reason };
        let rule = RULES.iter().find(|rule| rule.0 == name);
        let Some(rule) = rule else {
            kept.push(keep("doctor does not measure it".into()));
            continue;
        };
        let value = sum(doctor, rule, &mut sums).map(|sum| of_form(rule.1, sum, doctor, soc));
        // A barrier may take no time, and other constants may not.
        let possible = |v: &Spread| {
            [v.us, v.low, v.high].iter().all(|v| v.is_finite())
                && (v.us > 0.0 || v.us == 0.0 && constant.lo == 0.0)
        };
        match value {
            Err(reason) => kept.push(keep(reason)),
            Ok(v) if !possible(&v) => {
                kept.push(keep(format!("the times would give {:.3}, which is not possible", v.us)));
            }
            Ok(v) => {
                constants = constants.with_at(at, v.us);
                taken.push(Taken {
                    constant: name,
                    value: v.us,
                    measured_range: [v.low, v.high],
                    unit,
                    default,
                    range: [constant.lo, constant.hi],
                    in_range: constant.allows([v.low, v.high]),
                });
            }
        }
    }
    (constants, taken, kept)
}

/// Returns what the rules without a constant give.
fn others(doctor: &Doctor, soc: &Soc) -> Vec<Other> {
    let is_other = |rule: &&Rule| CONSTANTS.iter().all(|constant| constant.name != rule.0);
    let other = |rule: &Rule| {
        let sum = sum(doctor, rule, &mut Sums::new()).ok()?;
        let Spread { us, low, high } = of_form(rule.1, sum, doctor, soc);
        Some(Other { name: rule.0, cycles: us, measured_range: [low, high] })
    };
    RULES.iter().filter(is_other).filter_map(other).collect()
}

/// The sums of the rules so far, by their constants.
type Sums = BTreeMap<&'static str, Spread>;

/// Returns the sum of a rule in microseconds, with the range that those of its terms allow.
fn sum(
    doctor: &Doctor,
    (name, _, terms): &Rule,
    sums: &mut Sums,
) -> std::result::Result<Spread, String> {
    if let Some(known) = sums.get(name) {
        return Ok(*known);
    }
    let mut all = Spread { us: 0.0, low: 0.0, high: 0.0 };
    for &(factor, term) in *terms {
        let of = match term {
            Time(time) => measured(doctor, time)?,
            Of(constant) => {
                let rule = RULES.iter().find(|rule| rule.0 == constant);
                let rule = rule.ok_or("the constant has no rule")?;
                sum(doctor, rule, sums)?
            }
        };
        let ends = [factor * of.low, factor * of.high];
        all.us += factor * of.us;
        all.low += ends[0].min(ends[1]);
        all.high += ends[0].max(ends[1]);
    }
    sums.insert(name, all);
    Ok(all)
}

fn measured(doctor: &Doctor, time: &str) -> std::result::Result<Spread, String> {
    let Some(row) = doctor.times.get(time) else {
        return Err(format!("the report has no time {time}"));
    };
    let reason = || row.reason.as_deref().unwrap_or("without a reason");
    row.measured.ok_or_else(|| format!("{time} was not measured: {}", reason()))
}

/// Returns a constant from its sum.
fn of_form(form: Form, sum: Spread, doctor: &Doctor, soc: &Soc) -> Spread {
    let mhz = f64::from(soc.mhz);
    let scaled = |factor: f64| Spread {
        us: factor * sum.us,
        low: factor * sum.low,
        high: factor * sum.high,
    };
    let inverse = |n: f64| Spread { us: n / sum.us, low: n / sum.high, high: n / sum.low };
    match form {
        Cycles => scaled(mhz),
        Us => sum,
        PerCycle(n) => inverse(n / mhz),
        Gigabytes(bytes) => inverse(bytes * f64::from(doctor.vector_cores) / 1e3),
    }
}
