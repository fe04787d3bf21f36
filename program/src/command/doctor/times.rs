//! The times of single operations and of the kernels, and the sizes of their code. A probe repeats its operation, and the difference between two
//! launches with different numbers of repetitions contains neither the start of the kernel nor its end.

use std::ffi::CStr;

use anyhow::Result;
use avsg::ascend::RegisteredPool;
use avsg::ascend::acl::DeviceMemory;
use avsg::pool::PoolConfig;
use avsg::rows::RowFormat;
use avsg_measure::batch::OwnedBatch;
use avsg_measure::device_arrays::DeviceArrays;
use avsg_measure::fresh::FreshRows;
use serde_json::{Value, json};

use super::harness::{Harness, ROW, TIMES};
use super::kernel_checks::engine;
use super::probe::ProbeLaunch;
use super::report::Line;
use super::watch::progress;

/// What a row repeats.
#[derive(Clone, Copy, Debug)]
pub enum Timed {
    /// A probe: its kernel, the depth and the bytes of its setting.
    Probe(&'static CStr, i32, i32),
    /// A probe that reads host rows, so many before it waits.
    HostRows(i32),
    /// The launch of an empty kernel in a captured graph.
    Launch,
    /// A kernel of the operator on ids of a kind.
    Kernel(&'static str, &'static str),
    /// The code of a kernel, which is not run.
    Code(&'static str),
}
use Timed::{Code, HostRows, Kernel, Launch as Launches, Probe as Run};

/// A time or a size in the report: its name, the check that measures it, whether all cores do it at once or one core
/// alone, and the work.
pub type TimeLine = (&'static str, &'static str, bool, Timed);
const ONE: bool = false;
const ALL: bool = true;

const VECTOR: &CStr = c"avsg_probe_vector";
const COPIES_IN: &CStr = c"avsg_probe_rows";
const STORES: &CStr = c"avsg_probe_stores";

/// The times and sizes that are measured.
pub const ROWS: [TimeLine; 37] = [
    ("code_reset", "code", ONE, Code("avsg_reset")),
    ("code_plan", "code", ONE, Code("avsg_plan")),
    ("code_transfer", "code", ONE, Code("avsg_transfer")),
    ("code_append", "code", ONE, Code("avsg_append")),
    ("code_step", "code", ONE, Code("avsg_step")),
    ("vector_16", "operations", ONE, Run(VECTOR, 1, 4096)),
    ("vector_32", "operations", ONE, Run(VECTOR, 1, 8192)),
    ("vectors_8_of_16", "operations", ONE, Run(VECTOR, 8, 4096)),
    ("vectors_16_of_1", "operations", ONE, Run(VECTOR, 16, 256)),
    ("flags_8", "operations", ONE, Run(c"avsg_probe_flags", 8, 0)),
    ("round_trip", "operations", ONE, Run(c"avsg_probe_round_trip", 0, 0)),
    ("scalars_16", "operations", ONE, Run(c"avsg_probe_scalar", 0, 0)),
    ("gather_2048", "operations", ONE, Run(c"avsg_probe_gather", 0, 0)),
    ("compact_8192", "operations", ONE, Run(c"avsg_probe_compact", 0, 0)),
    ("copy_in_1", "operations", ONE, Run(COPIES_IN, 1, 32)),
    ("copies_in_32", "operations", ONE, Run(COPIES_IN, 32, 32)),
    ("copies_in_32_long", "operations", ONE, Run(COPIES_IN, 32, 1024)),
    ("copies_in_32_long_all", "operations", ALL, Run(COPIES_IN, 32, 1024)),
    ("copy_out_1", "operations", ONE, Run(STORES, 1, 32)),
    ("copies_out_32", "operations", ONE, Run(STORES, 32, 32)),
    ("host_row_1", "operations", ONE, HostRows(1)),
    ("host_rows_4_all", "operations", ALL, HostRows(4)),
    ("host_rows_8_all", "operations", ALL, HostRows(8)),
    ("host_rows_28_all", "operations", ALL, HostRows(28)),
    ("sync_all", "sync", ALL, Run(c"avsg_probe_sync", 0, 0)),
    ("launch_1", "launches", ONE, Launches),
    ("launch_all", "launches", ALL, Launches),
    ("plan_misses", "kernels", ONE, Kernel("plan", "misses")),
    ("plan_hits", "kernels", ONE, Kernel("plan", "hits")),
    ("transfer_misses", "kernels", ALL, Kernel("transfer", "misses")),
    ("step_misses", "kernels", ALL, Kernel("step", "misses")),
    ("step_hits", "kernels", ALL, Kernel("step", "hits")),
    ("step_mixed", "kernels", ALL, Kernel("step", "mixed")),
    ("append", "kernels", ALL, Kernel("append", "misses")),
    ("code_plan_inlined", "inlined", ONE, Code("avsg_plan")),
    ("plan_misses_inlined", "inlined", ONE, Kernel("plan", "misses")),
    ("plan_hits_inlined", "inlined", ONE, Kernel("plan", "hits")),
];

/// Measures the rows of a check: the bytes of code, or of times the median in microseconds, the least and the most. A row
/// that cannot be measured has a reason in its place, and the others are measured.
pub fn measure(harness: &Harness, check: &str) -> Vec<(&'static str, Line)> {
    let line = |&(name, _, all_cores, work): &TimeLine| {
        let time = |mut us: Vec<f64>| {
            us.sort_by(f64::total_cmp);
            json!({"us": us[us.len() / 2], "low": us[0], "high": us[us.len() - 1]})
        };
        let value = match work {
            Code(kernel) => harness.code_bytes(kernel).map(Value::from),
            _ => samples(harness, all_cores, work).map(time),
        };
        (name, Line::new(value))
    };
    ROWS.iter().filter(|row| row.1 == check).map(line).collect()
}

/// Measures a time several times, at least once.
fn samples(harness: &Harness, all_cores: bool, work: Timed) -> Result<Vec<f64>> {
    let setting = match work {
        Kernel(kernel, kind) => return steps(harness, kernel, kind),
        Launches | Code(_) => [0; 3],
        Run(_, depth, bytes) => [depth, bytes, depth],
        HostRows(depth) => [depth, ROW as i32, rows_of_a_core(harness)],
    };
    let probe = harness.probe(TIMES)?;
    let blocks = if all_cores { harness.cores } else { 1 };
    let (fewest, most, launches, samples) =
        if harness.simulated { (1, 3, 3, 1) } else { (100, 2100, 101, 5) };
    if let Launches = work {
        let launch = ProbeLaunch { name: c"avsg_probe_empty", from: 0, setting: [0; 4], blocks };
        let [few, many] = [1, launches].map(|times| probe.capture(&launch, times));
        let (few, many) = (few?, many?);
        let us = |_| Ok((probe.replay(&many)? - probe.replay(&few)?) / (launches - 1) as f64);
        return (0..samples).map(us).collect();
    }
    // Each core has 32 KB of its own.
    let device = DeviceMemory::zeroed(&harness.context, harness.cores << 15)?;
    let (name, from, _host) = match work {
        Run(name, ..) => (name, device.address(), None),
        _ => {
            // All rows are in one chunk.
            let rows = rows_of_a_core(harness) as usize * harness.cores;
            let config = PoolConfig::new(1, rows, RowFormat::single(ROW)?);
            let config = PoolConfig { chunk_bytes: usize::MAX, ..config };
            let pool = RegisteredPool::create(&harness.context, &config)?;
            let from = pool.addresses().next().unwrap_or(0);
            (COPIES_IN, from, Some(pool))
        }
    };
    let [depth, bytes, rows] = setting;
    let run = |n| probe.run(&ProbeLaunch { name, from, setting: [n, depth, bytes, rows], blocks });
    // The first launch of a kernel loads its code.
    run(fewest)?;
    let us = |_| Ok((run(most)? - run(fewest)?) / f64::from(most - fewest));
    (0..samples).map(us).collect()
}

/// Returns the registered rows of each core, which no cache of a device holds.
fn rows_of_a_core(harness: &Harness) -> i32 {
    if harness.simulated { 32 } else { 4096 }
}

/// Times a kernel on the ids of a kind, or the append of a row.
fn steps(harness: &Harness, kernel: &str, kind: &str) -> Result<Vec<f64>> {
    let (mut engine, probe) = (engine(harness)?, harness.probe(TIMES)?);
    let (k, rows) = (harness.params.k as usize, engine.pool().rows());
    let mut batch = OwnedBatch::uniform(k, 1, 1, rows);
    let mut fresh = FreshRows::new(engine.pool().format(), 1);
    let id = rows as i32 / 2;
    fresh.put(0, id, 9);
    if kernel == "append" {
        (batch.stable[0], batch.seq[0]) = (id, id + 1);
    }
    let fresh = std::slice::from_ref(&fresh);
    let arrays = DeviceArrays::new(&harness.context, &batch, fresh)?;
    let mut plan = engine.new_plan(1, 1)?;
    let (mut samples, steps) = (Vec::new(), if harness.simulated { 3 } else { 40 });
    // The first step is not counted.
    for step in 0..=steps {
        // All are new, all are those of the step before, or a fifth is new.
        let id = |i: usize| match kind {
            "misses" => i * 8 + step % 8,
            "mixed" => i * 8 + usize::from(i % 5 == step % 5) * (1 + step % 7),
            _ => i * 8,
        };
        batch.ids = (0..k).map(|i| id(i) as i32).collect();
        // A new generation empties the table, so that every id misses.
        batch.generation[0] = if kind == "misses" { step as i32 } else { 1 };
        arrays.write(&batch, fresh)?;
        let (batch, fresh, stream) = (arrays.batch(), arrays.fresh(0), probe.stream.raw());
        let mut time = |kernel: &str| {
            progress(&format!("avsg_{kernel}"));
            probe.time(|| {
                // SAFETY: the device arrays have the lengths that the batch states, a plan that is transferred was
                // filled by the kernel before this one in the same stream, and `time` waits for the stream before
                // anything is written again.
                unsafe {
                    match kernel {
                        "step" => engine.enqueue_step(&batch, &mut plan, 0, None, stream),
                        "plan" => engine.enqueue_plan(&batch, &mut plan, stream),
                        "transfer" => engine.enqueue_transfer(&plan, &[0], None, stream),
                        _ => engine.enqueue_append(&batch, 1, &[0], &fresh, stream),
                    }
                }
            })
        };
        if kernel == "transfer" {
            time("plan")?;
        }
        let us = time(kernel)?;
        samples.extend((step > 0).then_some(us));
    }
    engine.close()?;
    Ok(samples)
}
