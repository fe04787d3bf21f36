//! The times of single operations. A probe repeats its operation, and the difference between two launches with
//! different numbers of repetitions contains neither the start of the kernel nor its end.

use std::collections::BTreeMap;
use std::ffi::CStr;

use anyhow::Result;
use avsg::ascend::RegisteredPool;
use avsg::ascend::acl::DeviceMemory;

use super::check::Check;
use super::harness::{self, Harness, ROW};
use super::memory::host_rows;
use super::probe::Launch;
use super::report::Spread;
use super::step_times;

/// The measured times of a check by the names of [`ROWS`], each with a spread or the reason why it has none.
pub type Measured = BTreeMap<String, std::result::Result<Spread, String>>;

/// What a row repeats.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// A probe: its kernel, the depth and the bytes of its setting.
    Probe(&'static CStr, i32, i32),
    /// A probe that reads host rows.
    HostRows(i32),
    /// The launch of an empty kernel in a captured graph.
    Launch,
    /// A kernel of the operator, which `step_times` runs.
    Kernel,
}

/// A time in the report.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name in the report.
    pub name: &'static str,
    pub check: Check,
    /// What is done in this time.
    pub of: &'static str,
    /// Whether all cores do it at once, or one core alone.
    pub all_cores: bool,
    work: Work,
}

const fn row(name: &'static str, check: Check, work: Work, of: &'static str) -> Row {
    Row { name, check, of, all_cores: false, work }
}

impl Row {
    const fn on_all_cores(self) -> Self {
        Self { all_cores: true, ..self }
    }
}

const VECTOR: &CStr = c"avsg_probe_vector";
const ROWS_IN: &CStr = c"avsg_probe_rows";
const STORES: &CStr = c"avsg_probe_stores";
const CALL: &CStr = c"avsg_probe_call";
const FLAGS: &CStr = c"avsg_probe_flags";
const ROUND_TRIP: &CStr = c"avsg_probe_round_trip";
const SCALAR: &CStr = c"avsg_probe_scalar";
const GATHER: &CStr = c"avsg_probe_gather";
const COMPACT: &CStr = c"avsg_probe_compact";
const SYNC: &CStr = c"avsg_probe_sync";
const CODE: &CStr = c"avsg_probe_code";

use Check::{
    AppendTimes, CodeTimes, CopyTimes, HostTimes, LaunchTimes, PipeTimes, PlanTimes, StepTimes,
    SyncAllTime, TransferTimes,
};
use Work::{HostRows, Kernel, Launch as Launches, Probe as Run};

/// The times that are measured.
pub const ROWS: [Row; 34] = [
    row("vector_16", PipeTimes, Run(VECTOR, 1, 4096), "Adds of 16 repeats and a barrier"),
    row("vector_32", PipeTimes, Run(VECTOR, 1, 8192), "Adds of 32 repeats and a barrier"),
    row("vectors_8_of_16", PipeTimes, Run(VECTOR, 8, 4096), "8 Adds of 16 repeats and a barrier"),
    row("vectors_16_of_1", PipeTimes, Run(VECTOR, 16, 256), "16 Adds of a repeat and a barrier"),
    row("flags_8", PipeTimes, Run(FLAGS, 8, 0), "8 flags from V to MTE3, set and waited for"),
    row(
        "round_trip",
        PipeTimes,
        Run(ROUND_TRIP, 0, 0),
        "Adds of 16 repeats, a flag to S and one back",
    ),
    row(
        "scalars_16",
        PipeTimes,
        Run(SCALAR, 0, 0),
        "8 reads and 8 writes of UB by S, and a barrier",
    ),
    row("gather_2048", PipeTimes, Run(GATHER, 0, 0), "Gather of 2048 words and a barrier"),
    row("compact_8192", PipeTimes, Run(COMPACT, 0, 0), "GatherMask of 8192 words and a barrier"),
    row("copy_in_1", CopyTimes, Run(ROWS_IN, 1, 32), "a copy of 32 bytes into UB, waited for"),
    row(
        "copies_in_32",
        CopyTimes,
        Run(ROWS_IN, 32, 32),
        "32 copies of 32 bytes into UB, waited for",
    ),
    row(
        "copies_in_32_long",
        CopyTimes,
        Run(ROWS_IN, 32, 1024),
        "32 copies of 1024 bytes into UB, waited for",
    ),
    row("copies_in_32_long_all", CopyTimes, Run(ROWS_IN, 32, 1024), "the same on every core")
        .on_all_cores(),
    row("copy_out_1", CopyTimes, Run(STORES, 1, 32), "a copy of 32 bytes out of UB, waited for"),
    row(
        "copies_out_32",
        CopyTimes,
        Run(STORES, 32, 32),
        "32 copies of 32 bytes out of UB, waited for",
    ),
    row("host_row_1", HostTimes, HostRows(1), "a copy of a host row of 1152 bytes, waited for"),
    row(
        "host_rows_28",
        HostTimes,
        HostRows(28),
        "28 copies of host rows of 1152 bytes, waited for",
    ),
    row("host_rows_28_all", HostTimes, HostRows(28), "the same on every core").on_all_cores(),
    row("sync_all", SyncAllTime, Run(SYNC, 0, 0), "SyncAll").on_all_cores(),
    row("launch_1", LaunchTimes, Launches, "a kernel that does nothing, on one core"),
    row("launch_all", LaunchTimes, Launches, "a kernel that does nothing, on all cores")
        .on_all_cores(),
    row("writes_8", CodeTimes, Run(CALL, 0, 0), "8 writes of UB by S, and a barrier"),
    row("calls_8", CodeTimes, Run(CALL, 1, 0), "the same, each write in a function that is called"),
    row("code_8_kb", CodeTimes, Run(CODE, 1, 0), "straight code of about 8 KB: 512 writes of UB"),
    row("code_16_kb", CodeTimes, Run(CODE, 2, 0), "twice as much"),
    row("code_24_kb", CodeTimes, Run(CODE, 3, 0), "three times as much"),
    row("code_48_kb", CodeTimes, Run(CODE, 6, 0), "six times as much"),
    row("plan_misses", PlanTimes, Kernel, "avsg_plan, a request of K ids that all miss"),
    row("plan_hits", PlanTimes, Kernel, "avsg_plan, a request of K ids that all hit"),
    row("transfer_misses", TransferTimes, Kernel, "avsg_transfer of K rows").on_all_cores(),
    row("step_misses", StepTimes, Kernel, "avsg_step, a request of K ids that all miss")
        .on_all_cores(),
    row("step_hits", StepTimes, Kernel, "avsg_step, a request of K ids that all hit")
        .on_all_cores(),
    row("step_mixed", StepTimes, Kernel, "avsg_step, a request of K ids of which a fifth misses")
        .on_all_cores(),
    row("append", AppendTimes, Kernel, "avsg_append of a row").on_all_cores(),
];

/// Measures the times of a check. A failure is the reason of a time, and the others are measured.
pub fn measure(harness: &Harness, check: Check) -> Measured {
    let rows = || ROWS.iter().filter(|row| row.check == check);
    let words = |error: anyhow::Error| format!("{error:#}");
    if rows().any(|row| matches!(row.work, Kernel)) {
        let times = step_times::measure(harness, check).map_err(words);
        let of = |row: &Row| {
            let samples = times.as_ref().map_err(String::clone)?.get(row.name);
            samples.cloned().map(Spread::of).ok_or_else(|| "it was not measured".into())
        };
        return rows().map(|row| (row.name.into(), of(row))).collect();
    }
    let one = |row: &Row| (row.name.into(), measure_row(harness, row).map_err(words));
    rows().map(one).collect()
}

fn measure_row(harness: &Harness, row: &Row) -> Result<Spread> {
    let code = row.check == CodeTimes;
    let probe = harness.probe(if code { harness::CODE } else { harness::TIMES })?;
    let blocks = if row.all_cores { harness.cores } else { 1 };
    // The simulated clock has no noise and no resolution.
    let (fewest, most, samples) = if harness.simulated { (1, 3, 1) } else { (100, 2100, 5) };
    let slope = |few: f64, many: f64, repetitions: i32| (many - few) / f64::from(repetitions);
    if let Launches = row.work {
        let launch = Launch { name: c"avsg_probe_empty", from: 0, setting: [0; 4], blocks };
        let times = [1, if harness.simulated { 3 } else { 101 }];
        let [few, many] = times.map(|times| probe.capture(&launch, times as usize));
        let (few, many) = (few?, many?);
        let sample = |_| Ok(slope(probe.replay(&few)?, probe.replay(&many)?, times[1] - times[0]));
        return Ok(Spread::of((0..samples).map(sample).collect::<Result<_>>()?));
    }
    let memory = Source::new(harness, row)?;
    let run = |n: i32| probe.run(&memory.launch(n, blocks));
    // The first launch of a kernel loads its code.
    run(fewest)?;
    let sample = |_| Ok(slope(run(fewest)?, run(most)?, most - fewest));
    Ok(Spread::of((0..samples).map(sample).collect::<Result<_>>()?))
}

/// The memory that a probe reads, and its setting but for the repetitions.
struct Source {
    name: &'static CStr,
    from: u64,
    setting: [i32; 3],
    _device: DeviceMemory,
    _host: Option<RegisteredPool>,
}

impl Source {
    fn new(harness: &Harness, row: &Row) -> Result<Self> {
        // Each core has 32 KB of its own.
        let device = DeviceMemory::zeroed(&harness.context, harness.cores << 15)?;
        Ok(match row.work {
            HostRows(depth) => {
                let (pool, rows) = host_rows(harness)?;
                let from = pool.addresses().next().unwrap_or(0);
                let setting = [depth, ROW as i32, rows];
                Self { name: ROWS_IN, from, setting, _device: device, _host: Some(pool) }
            }
            Run(name, depth, bytes) => {
                let (from, setting) = (device.address(), [depth, bytes, depth]);
                Self { name, from, setting, _device: device, _host: None }
            }
            Launches | Kernel => anyhow::bail!("{} is no probe that repeats its work", row.name),
        })
    }

    fn launch(&self, n: i32, blocks: usize) -> Launch<'static> {
        let [depth, bytes, rows] = self.setting;
        Launch { name: self.name, from: self.from, setting: [n, depth, bytes, rows], blocks }
    }
}
