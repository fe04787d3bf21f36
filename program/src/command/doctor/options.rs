//! The options of `avsg doctor`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use super::check::{CHECKS, Check};
use crate::command::output::OutputOptions;

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// An Ascend 910B of this machine
    Ascend,
    /// The simulated runtime, which runs the same code; its times mean nothing
    AscendSim,
}

/// The options of `avsg doctor`.
#[derive(Args, Debug)]
#[command(
    after_help = "In the report every line has a value, or the reason why it has none. Without a device, nothing\n\
                        is examined and the exit status is 0. It is 1 if a kernel hangs, faults or is wrong,\n\
                        and 2 if the file of --library is no runtime.\n\
                        On a machine with a 910B, CANN 8.5 or newer and CMake:\n  \
                        source /usr/local/Ascend/cann/set_env.sh\n  \
                        avsg doctor --json report.json"
)]
pub struct Options {
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
    /// Run only these checks, separated by commas, and the kernels that they need
    #[arg(long, value_name = "CHECK", value_delimiter = ',',
          value_parser = PossibleValuesParser::new(CHECKS.iter().map(|check| check.name)))]
    pub only: Vec<String>,
    /// Seconds without progress after which a check is stopped
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub limit: u64,
    /// Form and file of the report
    #[command(flatten)]
    pub output: OutputOptions,
    /// Run one check in this process, with the kernels of a folder
    #[arg(long, hide = true, num_args = 2, value_names = ["CHECK", "FOLDER"])]
    pub check: Option<Vec<String>>,
}

impl Options {
    /// Returns whether the device is the simulator in this process.
    pub fn simulated(&self) -> bool {
        self.device == DeviceKind::AscendSim && self.library.is_none()
    }

    /// Returns whether a check was asked for, or a check that needs it.
    pub fn selects(&self, check: &Check) -> bool {
        let needs = |wanted: &String| {
            let needs = Check::named(wanted).map_or(&[][..], |wanted| wanted.needs);
            wanted == check.name || needs.contains(&check.name)
        };
        self.only.is_empty() || self.only.iter().any(needs)
    }
}
