//! The CPUs of this process and the limit on a device's cores.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::system::cgroups;
use crate::{Error, Result};

/// The largest number of cores that a device may have.
pub const MAX_CORES: usize = 1024;

/// Returns the numbers of the CPUs that this thread may use; empty if the system does not tell.
pub fn allowed_cpus() -> Vec<usize> {
    sched_getaffinity(None)
        .map(|set| (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
        .unwrap_or_default()
}

/// Returns the number of CPUs that this thread may use at once: at most those that the quota of its control
/// groups pays for; 1 if the system does not tell.
pub fn allowed_cpu_count() -> usize {
    let allowed = sched_getaffinity(None).map_or(1, |set| (set.count() as usize).max(1));
    cgroups::cpus("").map_or(allowed, |quota| quota.min(allowed))
}

/// Restricts the calling thread to `cpus`.
///
/// # Errors
/// If the system refuses, for example because none of them is a CPU of this process.
pub fn restrict_thread(cpus: impl IntoIterator<Item = usize>) -> Result<()> {
    let mut set = CpuSet::new();
    cpus.into_iter().filter(|&cpu| cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu));
    let remedy = "pass CPUs that this process may use (avsg::system::cpus::allowed_cpus)";
    sched_setaffinity(None, &set)
        .map_err(|error| Error::os("sched_setaffinity", "a thread", error, remedy))
}

/// The CPUs that a thread of this process is pinned to.
static PINNED: [AtomicU64; CpuSet::MAX_CPU / 64] =
    [const { AtomicU64::new(0) }; CpuSet::MAX_CPU / 64];

/// The right to pin a thread to the CPU with this number, which no other thread of this library has at the same time.
#[derive(Debug)]
pub(crate) struct PinnedCpu(pub usize);

impl PinnedCpu {
    /// Takes a CPU; `None` if another thread has it.
    pub fn take(cpu: usize) -> Option<Self> {
        let word = PINNED.get(cpu / 64)?;
        let bit = 1 << (cpu % 64);
        (word.fetch_or(bit, Ordering::AcqRel) & bit == 0).then_some(Self(cpu))
    }
}

impl Drop for PinnedCpu {
    fn drop(&mut self) {
        PINNED[self.0 / 64].fetch_and(!(1 << (self.0 % 64)), Ordering::AcqRel);
    }
}
