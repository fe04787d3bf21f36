//! Checks of what the runtime does where its documents leave it open: registered host memory and faults.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use avsg::Error;
use avsg::ascend::RegisteredPool;
use avsg::engine::{DeviceArray, DeviceBatch};
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg_measure::batch::OwnedBatch;
use avsg_measure::content::{check_row, fill_row};
use avsg_measure::device_arrays::DeviceArrays;
use serde_json::Value;

use super::harness::{Harness, ROW, TIMES};
use super::kernel_checks::engine;
use super::watch::progress;

fn register_chunk(harness: &Harness, bytes: usize, pages: Pages) -> Result<Arc<RegisteredPool>> {
    let format = RowFormat::single(4096)?;
    let config =
        PoolConfig { chunk_bytes: bytes, pages, ..PoolConfig::new(1, bytes / 4096, format) };
    Ok(RegisteredPool::new(&harness.context, HostPool::new(&config)?)?)
}

/// Returns whether memory in explicit hugepages can be registered.
pub fn hugetlb(harness: &Harness) -> Result<Value> {
    let pool = register_chunk(harness, 8 << 20, Pages::Huge2M);
    let got = pool.context("the registration was refused")?.pool().pages();
    if got != Pages::Huge2M {
        bail!(
            "no 2 MiB hugepages are free (the pool got {got}); set /proc/sys/vm/nr_hugepages to 4 or more"
        );
    }
    Ok(true.into())
}

/// Returns the bytes of the largest registration that succeeded, of powers of two from 1 MiB to 1 GiB, and to 4 MiB
/// on the simulator.
pub fn largest(harness: &Harness) -> Result<Value> {
    let most = if harness.simulated { 22 } else { 30 };
    let mut best = 0;
    for bytes in (20..=most).map(|power| 1usize << power) {
        match register_chunk(harness, bytes, Pages::Plain) {
            Ok(_) => best = bytes,
            Err(error) if best == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(best.into())
}

/// Returns whether a kernel reads the new content of a host row that was rewritten after the previous
/// kernel.
pub fn rewritten_row(harness: &Harness) -> Result<Value> {
    let mut engine = engine(harness)?;
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
    Ok(seen.into())
}

/// Returns the code that a wait returns after a kernel has read host memory that is not registered.
pub fn fault_code(harness: &Harness) -> Result<Value> {
    let (mut engine, probe) = (engine(harness)?, harness.probe(TIMES)?);
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
        Err(Error::Acl { code, .. }) => Ok(code.into()),
        Err(error) => Err(error.into()),
        Ok(()) => bail!("the kernel read unregistered host memory without an error"),
    }
}
