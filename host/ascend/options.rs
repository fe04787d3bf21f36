//! Which device, which kernels, and how long a wait may take.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::acl::owned::Context;
use crate::{Error, Result};

/// What an engine on an Ascend device is made with.
#[derive(Clone, Debug)]
pub struct AscendOptions {
    /// The device.
    pub context: Arc<Context>,
    /// One file with all kernels, or a folder with one each: `avsg_plan.o` and so on (`.cpp` for the
    /// simulator).
    pub kernels: PathBuf,
    /// Milliseconds after which a wait gives up.
    pub timeout_ms: u32,
    /// Whether a step is one launch, whose cores wait for each other. By default it is in the
    /// engine's own stream, and two launches in a caller's: there other streams may compute.
    pub one_launch: Option<bool>,
}

impl AscendOptions {
    /// Ten seconds for a wait.
    pub fn new(context: Arc<Context>, kernels: impl Into<PathBuf>) -> Self {
        Self { context, kernels: kernels.into(), timeout_ms: 10_000, one_launch: None }
    }

    pub(super) fn timeout(&self) -> Result<i32> {
        i32::try_from(self.timeout_ms).ok().filter(|&ms| ms > 0).ok_or_else(|| {
            let limit = format!("it must be 1..={} milliseconds", i32::MAX);
            Error::invalid("timeout", self.timeout_ms, limit, "10000 is a good start")
        })
    }

    /// The file of a kernel.
    pub(super) fn file(&self, name: &str) -> Result<PathBuf> {
        let path = |path: &Path| {
            std::path::absolute(path).map_err(|source| Error::Os {
                call: "getcwd",
                what: path.display().to_string(),
                source,
                remedy: "pass an absolute path",
            })
        };
        if self.kernels.is_file() {
            return path(&self.kernels);
        }
        let found = ["o", "cpp"].map(|end| self.kernels.join(format!("{name}.{end}")));
        match found.iter().find(|file| file.is_file()) {
            Some(file) => path(file),
            None => Err(Error::Unavailable {
                what: "a kernel",
                tried: found.map(|file| file.display().to_string()).join(", "),
                remedy: "compile the kernels of this geometry (avsg emit) into that folder",
            }),
        }
    }
}
