//! Checks of single costs by the probe kernels.

use anyhow::{Result, bail};
use avsg::ascend::acl::DeviceMemory;

use super::harness::Harness;

fn output(harness: &Harness) -> Result<DeviceMemory> {
    Ok(DeviceMemory::zeroed(&harness.context, 4096)?)
}

/// Returns what INT32_MAX + 1 is on a vector core.
pub fn overflow(harness: &Harness) -> Result<&'static str> {
    if harness.simulated {
        bail!("the simulator raises an exception; only hardware gives this value");
    }
    let out = output(harness)?;
    harness.probe()?.run(c"avsg_probe_overflow", 0, &out, [0; 4], 1)?;
    let mut word = [0; 4];
    out.read(0, &mut word)?;
    Ok(match i32::from_ne_bytes(word) {
        i32::MIN => "wraps",
        i32::MAX => "saturates",
        _ => "something else",
    })
}

/// Returns the words that Gather reads per nanosecond.
pub fn gather(harness: &Harness) -> Result<f64> {
    let (probe, out) = (harness.probe()?, output(harness)?);
    let run = |n| probe.best(|probe| probe.run(c"avsg_probe_gather", 0, &out, [n, 0, 0, 0], 1));
    let (few, many) = (run(10)?, run(if harness.simulated { 11 } else { 1010 })?);
    let mut word = [0; 4];
    out.read(0, &mut word)?;
    if i32::from_ne_bytes(word) != 7 {
        bail!("gathered {} instead of 7", i32::from_ne_bytes(word));
    }
    harness.require_hardware()?;
    Ok(1000.0 * 2048.0 / ((many - few) * 1e3))
}

/// Returns the microseconds of a SyncAll of all cores.
pub fn sync_all(harness: &Harness) -> Result<f64> {
    let (probe, out) = (harness.probe()?, output(harness)?);
    let run = |n| {
        let setting = [n, 0, 0, 0];
        probe.best(|probe| probe.run(c"avsg_probe_sync", 0, &out, setting, harness.cores))
    };
    let (few, many) = (run(1)?, run(if harness.simulated { 3 } else { 1001 })?);
    harness.require_hardware()?;
    Ok((many - few) / 1000.0)
}

/// Returns the microseconds of a launch of an empty kernel on all cores.
pub fn launch(harness: &Harness) -> Result<f64> {
    let (probe, out) = (harness.probe()?, output(harness)?);
    let run = |probe: &super::probe::Probe| {
        probe.run(c"avsg_probe_empty", 0, &out, [0; 4], harness.cores)
    };
    let best = probe.best(run)?;
    harness.require_hardware()?;
    Ok(best)
}
