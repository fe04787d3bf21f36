//! The device that is examined, and the geometry of its kernels.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// An Ascend 910B of this machine
    Ascend,
    /// The simulated runtime, which runs the same code; its times mean nothing
    AscendSim,
}

/// The device and the geometry.
#[derive(Args, Debug)]
pub struct Target {
    /// Device that is examined
    #[arg(long, value_enum, default_value = "ascend")]
    pub device: DeviceKind,
    /// Library of the runtime [default: libacl_rt.so, then libascendcl.so]
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// K, the ids selected per token [default: 2048, and 64 on the simulator]
    #[arg(long, value_name = "K")]
    pub k: Option<u32>,
    /// S, the slots per request [default: 8192, and 256 on the simulator]
    #[arg(long, value_name = "S")]
    pub slots: Option<u32>,
    /// Seconds without progress after which a check is stopped
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub limit: u64,
}

impl Target {
    /// Returns whether the device is the simulator in this process.
    pub fn simulated(&self) -> bool {
        self.device == DeviceKind::AscendSim && self.library.is_none()
    }
}
