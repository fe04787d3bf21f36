//! Checks that run the operator on the device.

use anyhow::{Context as _, Result, bail};
use avsg::Error;
use avsg::engine::{DeviceArray, DeviceBatch};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::{check_row, fill_row};
use avsg_testkit::device_arrays::DeviceArrays;

use super::harness::{Harness, ROW, TIMES};
use super::kernels::engine;
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

/// Returns the code that a wait returns after a kernel has read host memory that is not registered.
pub fn fault_code(harness: &Harness) -> Result<i32> {
    let (mut engine, probe) = (engine(harness, 1, |_| 1)?, harness.probe(TIMES)?);
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
