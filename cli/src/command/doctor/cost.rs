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

/// GatherMasks whose counts are compared.
const COUNTS: i32 = 64;

/// Returns when the count of a GatherMask may be read.
pub fn gather_count(harness: &Harness) -> Result<&'static str> {
    let out = output(harness)?;
    harness.probe()?.run(c"avsg_probe_count", 0, &out, [COUNTS, 0, 0, 0], 1)?;
    let mut words = [0; 8];
    out.read(0, &mut words)?;
    let [at_once, after_wait] =
        [0, 4].map(|at| i32::from_ne_bytes(std::array::from_fn(|byte| words[at + byte])));
    when_right(at_once, after_wait)
}

/// Returns when counts are right, by the wrong ones that were read at once and after a wait.
fn when_right(at_once: i32, after_wait: i32) -> Result<&'static str> {
    if after_wait != 0 {
        bail!(
            "{after_wait} of {COUNTS} counts are wrong after the wait: avsg_plan cannot be right"
        );
    }
    Ok(if at_once == 0 { AT_ONCE } else { AFTER_WAIT })
}

/// The register interlocks: `avsg emit --gather-count at-once` is right, too.
const AT_ONCE: &str = "right at once";
const AFTER_WAIT: &str = "right after a wait only";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_right_at_once_or_after_a_wait_or_never() {
        assert_eq!(when_right(0, 0).unwrap(), AT_ONCE);
        assert_eq!(when_right(1, 0).unwrap(), AFTER_WAIT);
        for at_once in [0, 3] {
            let reason = when_right(at_once, 2).unwrap_err().to_string();
            assert!(reason.starts_with("2 of 64 counts are wrong after the wait"), "{reason}");
        }
    }
}
