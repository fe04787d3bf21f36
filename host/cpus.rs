//! The CPUs of this process, and how many cores a device may have.

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::{Error, Result};

/// Most cores of a device.
pub const MAX_CORES: usize = 1024;

/// Refuses a number of cores that no device has.
pub(crate) fn check_cores(cores: usize) -> Result<()> {
    if (1..=MAX_CORES).contains(&cores) {
        return Ok(());
    }
    let limit = format!("a device has 1..={MAX_CORES} cores");
    Err(Error::invalid("cores", cores, limit, "pass a number in that range"))
}

/// CPUs that this process may use.
pub fn allowed_cpus() -> Vec<usize> {
    sched_getaffinity(None)
        .map(|set| (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
        .unwrap_or_default()
}
