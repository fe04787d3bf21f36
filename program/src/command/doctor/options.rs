//! The options of `avsg doctor`.

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::check::{CHECKS, Check};
use super::target::Target;
use crate::command::output::OutputOptions;

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
    /// The device and the geometry
    #[command(flatten)]
    pub target: Target,
    /// Run only these checks, separated by commas, and the kernels that they need
    #[arg(long, value_name = "CHECK", value_delimiter = ',',
          value_parser = PossibleValuesParser::new(CHECKS.iter().map(|check| check.name)))]
    pub only: Vec<String>,
    /// Form and file of the report
    #[command(flatten)]
    pub output: OutputOptions,
    /// Run one check in this process, with the kernels of a folder
    #[arg(long, hide = true, num_args = 2, value_names = ["CHECK", "FOLDER"])]
    pub check: Option<Vec<String>>,
}

impl Options {
    /// Returns whether a check was asked for, or a check that needs it.
    pub fn selects(&self, check: &Check) -> bool {
        let needs = |wanted: &String| {
            let needs = Check::named(wanted).map_or(&[][..], |wanted| wanted.needs);
            wanted == check.name || needs.contains(&check.name)
        };
        self.only.is_empty() || self.only.iter().any(needs)
    }
}
