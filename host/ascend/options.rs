//! Which device, which kernels, and how long a wait may take.

use std::path::PathBuf;
use std::sync::Arc;

use super::acl::owned::Context;
use crate::{Error, Result};

/// What an engine on an Ascend device is made with.
#[derive(Clone, Debug)]
pub struct AscendOptions {
    /// The device.
    pub context: Arc<Context>,
    /// One file with all kernels, or a folder with one each: `avsg_plan.o` and so on (`.cpp` for the
    /// simulator). Without it, those that are embedded in this library.
    pub kernels: Option<PathBuf>,
    /// Milliseconds after which a wait gives up.
    pub timeout_ms: u32,
    /// Whether a step is one launch, whose cores wait for each other. By default it is in the
    /// engine's own stream, and two launches in a caller's: there other streams may compute.
    pub one_launch: Option<bool>,
}

impl AscendOptions {
    /// Embedded kernels, and ten seconds for a wait.
    pub fn new(context: Arc<Context>) -> Self {
        Self { context, kernels: None, timeout_ms: 10_000, one_launch: None }
    }

    /// The kernels of this file or folder.
    pub fn with_kernels(self, kernels: impl Into<PathBuf>) -> Self {
        Self { kernels: Some(kernels.into()), ..self }
    }

    pub(super) fn timeout(&self) -> Result<i32> {
        i32::try_from(self.timeout_ms).ok().filter(|&ms| ms > 0).ok_or_else(|| {
            let limit = format!("it must be 1..={} milliseconds", i32::MAX);
            Error::invalid("timeout", self.timeout_ms, limit, "10000 is a good start")
        })
    }
}
