//! The CPUs of this process and the limit on a device's cores.

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::{Error, Result};

/// The largest number of cores that a device may have.
pub const MAX_CORES: usize = 1024;

/// Returns an error unless `cores` is 1..=[`MAX_CORES`].
pub(crate) fn check_cores(cores: usize) -> Result<()> {
    if (1..=MAX_CORES).contains(&cores) {
        return Ok(());
    }
    let limit = format!("a device has 1..={MAX_CORES} cores");
    Err(Error::invalid("cores", cores, limit, "pass a number in that range"))
}

/// Returns the numbers of the CPUs that this process may use; empty if the system does not tell.
pub fn allowed_cpus() -> Vec<usize> {
    sched_getaffinity(None)
        .map(|set| (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
        .unwrap_or_default()
}
