//! Checks that run the operator on the device.

use anyhow::{Context as _, Result, bail};
use avsg::Error;
use avsg::engine::{DeviceArray, DeviceBatch};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::{check_row, fill_row};
use avsg_testkit::device_arrays::DeviceArrays;

use super::harness::Harness;
use super::kernels::{ROW, engine};
use super::watch::progress;

/// Returns whether a kernel reads the new content of a host row that was rewritten after the previous
/// kernel.
pub fn rewritten_row(harness: &Harness) -> Result<bool> {
    let mut engine = engine(harness, 1, |_| 1)?;
    let mut plan = engine.new_plan(1, 1)?;
    let ids: Vec<i32> = (0..harness.params.k as i32).collect();
    let mut batch = OwnedBatch::uniform(ids.len(), 1, 1, engine.pool().rows());
    batch.ids.clone_from(&ids);
    let (mut bytes, mut seen) = ([0; ROW], true);
    for version in 1..=3 {
        for &id in &ids {
            fill_row(id, version, &mut bytes);
            engine.pool().write_row(0, id as usize, &bytes)?;
        }
        // A new generation empties the table, so that all rows are fetched again.
        batch.generation[0] = version as i32;
        progress("avsg_step");
        engine.step(&batch.batch(), &mut plan, 0, None)?;
        for (&id, &slot) in ids.iter().zip(plan.slots(0)) {
            let slot = usize::try_from(slot).ok().context("an id has no slot")?;
            engine.buffer().slot_bytes(0, 0, slot, &mut bytes)?;
            seen &= check_row(id, version, &bytes);
        }
    }
    Ok(seen)
}

/// Returns the microseconds of (plan, transfer): the least of several steps in which every id misses.
fn measure_step(harness: &Harness) -> Result<(f64, f64)> {
    let (mut engine, probe) = (engine(harness, 1, |_| 1)?, harness.probe()?);
    let k = harness.params.k as usize;
    let mut batch = OwnedBatch::uniform(k, 1, 1, engine.pool().rows());
    let arrays = DeviceArrays::new(&harness.context, &batch, &[])?;
    let mut plan = engine.new_plan(1, 1)?;
    let (mut plan_us, mut copy_us) = (f64::MAX, f64::MAX);
    for step in 0..if harness.simulated { 2 } else { 20 } {
        batch.ids = (0..k).map(|i| ((i * 8 + step) % (8 * k)) as i32).collect();
        batch.generation[0] = step as i32;
        arrays.write(&batch, &[])?;
        let (batch, stream) = (arrays.batch(), probe.stream.raw());
        progress("avsg_plan");
        // SAFETY: the device arrays have the lengths that the batch states, and `time` waits for the
        // stream before they are written again.
        let queue = || unsafe { Ok(engine.enqueue_plan(&batch, &mut plan, stream)?) };
        let matched = probe.time(queue)?;
        progress("avsg_transfer");
        // SAFETY: `plan` was filled by the kernel before this one in the same stream, and `time` waits
        // for the stream.
        let queue = || unsafe { Ok(engine.enqueue_transfer(&plan, 0, None, stream)?) };
        let copied = probe.time(queue)?;
        (plan_us, copy_us) = (plan_us.min(matched), copy_us.min(copied));
    }
    engine.close()?;
    Ok((plan_us, copy_us))
}

/// Returns the microseconds of Stage One of one request.
pub fn matching(harness: &Harness) -> Result<f64> {
    let (plan, _) = measure_step(harness)?;
    harness.require_hardware()?;
    Ok(plan)
}

/// Returns the bandwidth of Stage Two in GB/s when every id misses.
pub fn bandwidth(harness: &Harness) -> Result<f64> {
    let (_, copy) = measure_step(harness)?;
    harness.require_hardware()?;
    Ok((harness.params.k as usize * ROW) as f64 / copy / 1e3)
}

/// Returns the code that a wait returns after a kernel has read host memory that is not registered.
pub fn fault_code(harness: &Harness) -> Result<i32> {
    let (mut engine, probe) = (engine(harness, 1, |_| 1)?, harness.probe()?);
    let batch = OwnedBatch::uniform(harness.params.k as usize, 1, 1, engine.pool().rows());
    let arrays = DeviceArrays::new(&harness.context, &batch, &[])?;
    arrays.write(&batch, &[])?;
    let host = [0i32; 4096];
    let mut plan = engine.new_plan(1, 1)?;
    let ids = DeviceArray { address: host.as_ptr() as u64, len: host.len() };
    let batch = DeviceBatch { ids, ..arrays.batch() };
    // SAFETY: `ids` is the address of unregistered host memory on purpose, and the device refuses it.
    // `host` is not moved or dropped before the wait, and the other arrays have the lengths that the
    // batch states.
    let queued = unsafe { engine.enqueue_plan(&batch, &mut plan, probe.stream.raw()) };
    match queued.and_then(|()| probe.stream.synchronize(probe.timeout)) {
        Err(Error::Acl { code, .. }) => Ok(code),
        Err(error) => Err(error.into()),
        Ok(()) => bail!("the kernel read unregistered host memory without an error"),
    }
}
