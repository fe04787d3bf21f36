//! `avsg doctor` examines an Ascend device: it builds the kernels, runs each of them alone, and
//! measures what the documentation leaves open.
//!
//! This process never calls the runtime. Every check runs in a process of its own with a time
//! limit, so a kernel or a driver that hangs stops one check, and the report is still written.

mod check;
mod cost;
mod exam;
mod harness;
mod kernels;
mod memory;
mod operator;
mod options;
mod placed;
mod probe;
mod report;
mod show;
mod watch;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum as _;

use check::Check;
use harness::Harness;
pub use options::Options;
use report::{Field, Kernel, Status};
use watch::{answer, progress};

/// Examines the device and prints the report, or runs one check for another process.
pub fn run(options: &Options) -> Result<ExitCode> {
    if let Some([name, folder]) = options.check.as_deref() {
        let check = Check::from_str(name, false).map_err(anyhow::Error::msg)?;
        run_check(options, check, Path::new(folder))?;
        return Ok(ExitCode::SUCCESS);
    }
    options.output.check(options.library.as_deref(), [])?;
    let report = exam::examine(options)?;
    if let Some(reason) = report.no_device.as_ref().filter(|_| !options.output.shows_text()) {
        eprintln!("skipped: no device: {reason}");
    }
    options.output.write(&report, || show::page(&report))?;
    let bad = |kernel: &Kernel| kernel.status != Status::Good;
    let good = report.no_device.is_some() || !report.kernels.values().any(bad);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn run_check(options: &Options, check: Check, folder: &Path) -> Result<()> {
    progress(&format!("the check {}", check.name()));
    if check == Check::Device {
        let device = Harness::new(options, folder).and_then(|harness| harness.describe());
        return answer(&device.map_err(|error| format!("{error:#}")));
    }
    let harness = Harness::new(options, folder)?;
    if Check::KERNELS.contains(&check) {
        return answer(&kernels::run(&harness, check));
    }
    answer(&match check {
        Check::GatherCount => Field::new(cost::gather_count(&harness), ""),
        Check::Overflow => Field::new(cost::overflow(&harness), ""),
        Check::Gather => Field::new(cost::gather(&harness), "words per nanosecond and core"),
        Check::SyncAll => Field::new(cost::sync_all(&harness), "microseconds"),
        Check::Launch => Field::new(cost::launch(&harness), "microseconds"),
        Check::RowsInFlight => Field::new(memory::rows_in_flight(&harness), "[rows, GB/s]"),
        Check::Hugetlb => Field::new(memory::hugetlb(&harness), ""),
        Check::LargestRegistration => Field::new(memory::largest(&harness), "bytes"),
        Check::RewrittenRow => Field::new(operator::rewritten_row(&harness), ""),
        Check::MatchLatency => Field::new(operator::matching(&harness), "microseconds"),
        Check::Bandwidth => Field::new(operator::bandwidth(&harness), "GB/s"),
        _ => Field::new(operator::fault_code(&harness), "ACL code"),
    })
}
