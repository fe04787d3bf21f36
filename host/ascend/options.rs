//! The options of an engine on an Ascend device.

use std::path::PathBuf;
use std::sync::Arc;

use super::acl::Context;
use crate::{Result, invalid};

/// The device, the kernels and the timeouts of an engine on an Ascend device.
#[derive(Clone, Debug)]
pub struct AscendOptions {
    /// The context of the device.
    pub context: Arc<Context>,
    /// One file with all kernels, or a folder that `avsg emit` wrote and CMake built: each kernel is
    /// in `fatbin/avsg_plan/avsg_plan.o` and so on. Its file may also be in the folder itself
    /// (`.cpp` for the simulator). `None` takes the kernels that are embedded in this library.
    pub kernels: Option<PathBuf>,
    /// Milliseconds after which a synchronization fails; 1 to `i32::MAX`.
    pub timeout_ms: u32,
    /// Whether a step is one launch, whose cores synchronize by SyncAll. By default it is one
    /// launch in the engine's own stream, and two launches in a caller's stream, beside which other
    /// streams may run kernels.
    pub one_launch: Option<bool>,
}

impl AscendOptions {
    /// Returns options with the embedded kernels and a timeout of ten seconds.
    pub fn new(context: Arc<Context>) -> Self {
        Self { context, kernels: None, timeout_ms: 10_000, one_launch: None }
    }

    pub(super) fn timeout(&self) -> Result<i32> {
        i32::try_from(self.timeout_ms).ok().filter(|&ms| ms > 0).ok_or_else(|| {
            invalid!("timeout" is self.timeout_ms, but "it must be 1..={} milliseconds", i32::MAX;
                "10000 is a good start")
        })
    }
}
