//! The times of the operator's kernels.

use std::collections::BTreeMap;

use anyhow::Result;
use avsg::engine::DeviceFresh;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::device_arrays::DeviceArrays;
use avsg_testkit::fresh::FreshRows;

use super::check::Check;
use super::harness::{Harness, TIMES};
use super::kernels::engine;
use super::watch::progress;

/// Steps of one request, of which the first of each kind is not counted.
fn steps(harness: &Harness) -> usize {
    if harness.simulated { 3 } else { 40 }
}

/// Returns the ids of a step: all new, all those of the step before, or a fifth new.
fn ids(k: usize, step: usize, kind: &str) -> Vec<i32> {
    let id = |i: usize| match kind {
        "misses" => i * 8 + step % 8,
        "mixed" => i * 8 + usize::from(i % 5 == step % 5) * (1 + step % 7),
        _ => i * 8,
    };
    (0..k).map(|i| id(i) as i32).collect()
}

/// Measures the kernel of a check, and returns the microseconds of each of its steps by the name in the report.
pub fn measure(harness: &Harness, check: Check) -> Result<BTreeMap<String, Vec<f64>>> {
    let (kernel, kinds): (&str, &[&str]) = match check {
        Check::PlanTimes => ("plan", &["misses", "hits"]),
        Check::TransferTimes => ("transfer", &["misses"]),
        Check::StepTimes => ("step", &["misses", "hits", "mixed"]),
        _ => return append(harness),
    };
    kinds
        .iter()
        .map(|kind| Ok((format!("{kernel}_{kind}"), samples(harness, kernel, kind)?)))
        .collect()
}

fn samples(harness: &Harness, kernel: &str, kind: &str) -> Result<Vec<f64>> {
    let (mut engine, probe) = (engine(harness, 1, |_| 1)?, harness.probe(TIMES)?);
    let k = harness.params.k as usize;
    let mut batch = OwnedBatch::uniform(k, 1, 1, engine.pool().rows());
    let arrays = DeviceArrays::new(&harness.context, &batch, &[])?;
    let mut plan = engine.new_plan(1, 1)?;
    let mut samples = Vec::new();
    for step in 0..=steps(harness) {
        batch.ids = ids(k, step, kind);
        // A new generation empties the table, so that every id misses.
        batch.generation[0] = if kind == "misses" { step as i32 } else { 1 };
        arrays.write(&batch, &[])?;
        let (batch, stream) = (arrays.batch(), probe.stream.raw());
        progress(&format!("avsg_{}", if kernel == "step" { "step" } else { "plan" }));
        let planned = probe.time(|| {
            // SAFETY: the device arrays have the lengths that the batch states, and `time` waits for the
            // stream before they are written again.
            let queued = unsafe {
                match kernel {
                    "step" => engine.enqueue_step(&batch, &mut plan, 0, None, stream),
                    _ => engine.enqueue_plan(&batch, &mut plan, stream),
                }
            };
            Ok(queued?)
        })?;
        let us = if kernel == "transfer" {
            progress("avsg_transfer");
            probe.time(|| {
                // SAFETY: `plan` was filled by the kernel before this one in the same stream, and `time`
                // waits for the stream.
                let queued = unsafe { engine.enqueue_transfer(&plan, 0, None, stream) };
                Ok(queued?)
            })?
        } else {
            planned
        };
        if step > 0 {
            samples.push(us);
        }
    }
    engine.close()?;
    Ok(samples)
}

fn append(harness: &Harness) -> Result<BTreeMap<String, Vec<f64>>> {
    let (mut engine, probe) = (engine(harness, 1, |_| 1)?, harness.probe(TIMES)?);
    let mut batch = OwnedBatch::new(harness.params.k as usize, 0);
    let mut fresh = FreshRows::new(engine.pool().format(), 1);
    let id = engine.pool().rows() as i32 / 2;
    batch.push([0, 1, id, id + 1], &[vec![-1; harness.params.k as usize]]);
    fresh.put(0, id, 9);
    let arrays = DeviceArrays::new(&harness.context, &batch, std::slice::from_ref(&fresh))?;
    arrays.write(&batch, &[fresh])?;
    let (batch, segments, stream) = (arrays.batch(), arrays.fresh(0), probe.stream.raw());
    let fresh = DeviceFresh { segments: &segments };
    progress("avsg_append");
    let mut samples = Vec::new();
    for _ in 0..steps(harness) {
        // SAFETY: the device arrays have the lengths that the batch states, and `time` waits for the stream.
        let queue = || unsafe { Ok(engine.enqueue_append(&batch, 1, 0, &fresh, stream)?) };
        samples.push(probe.time(queue)?);
    }
    engine.close()?;
    Ok(BTreeMap::from([("append".into(), samples)]))
}
