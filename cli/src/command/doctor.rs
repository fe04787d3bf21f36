//! `avsg doctor` examines an Ascend device: it builds the kernels, runs each of them alone, and
//! measures what the documentation leaves open.
//!
//! This process never calls the runtime. Every check runs in a process of its own with a time
//! limit, so a kernel or a driver that hangs stops one check, and the report is still written.

mod behaviour;
mod check;
pub mod clocks;
mod exam;
mod harness;
mod kernels;
mod memory;
mod operator;
mod options;
mod placed;
mod private;
mod probe;
mod report;
mod show;
mod step_times;
mod times;
mod watch;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum as _;
use serde_json::{Value, to_value};

use check::Check;
use harness::Harness;
pub use options::Options;
use report::{Field, Kernel, NoDevice, Status};

/// Examines the device and prints the report, or runs one check for another process.
pub fn run(options: &Options) -> Result<ExitCode> {
    if let Some([name, folder]) = options.check.as_deref() {
        let check = Check::from_str(name, false).map_err(anyhow::Error::msg)?;
        watch::begin(&format!("the check {}", check.name()));
        watch::answer(&find(options, check, Path::new(folder))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    options.output.check(options.library.as_deref(), [])?;
    let report = exam::examine(options, &|check, folder| exam::watched(options, check, folder))?;
    if let Some(reason) = report.no_device.as_ref().filter(|_| !options.output.shows_text()) {
        eprintln!("skipped: no device: {reason}");
    }
    let json = private::without_names(to_value(&report)?);
    options.output.write(&json, || show::page(&report))?;
    let bad = |kernel: &Kernel| kernel.status != Status::Good;
    let good = report.no_device.is_some() || !report.kernels.values().any(bad);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Examines the simulated device in this process, and returns the report as the file has it.
///
/// # Errors
/// If the options name another device.
pub fn examine_simulated(options: &Options) -> Result<Value> {
    anyhow::ensure!(options.simulated(), "only the simulated device is examined in one process");
    let report = exam::examine(options, &|check, folder| Ok(Ok(find(options, check, folder)?)))?;
    Ok(private::without_names(to_value(&report)?))
}

/// Runs a check in this process, and returns the JSON of its result.
fn find(options: &Options, check: Check, folder: &Path) -> Result<Value> {
    if check == Check::Device {
        let device = Harness::new(options, folder).and_then(|harness| harness.describe());
        return Ok(to_value(device.map_err(|error| NoDevice::new(&error)))?);
    }
    let harness = Harness::new(options, folder)?;
    if Check::KERNELS.contains(&check) {
        return Ok(to_value(kernels::run(&harness, check))?);
    }
    if Check::TIMES.contains(&check) {
        return Ok(to_value(times::measure(&harness, check))?);
    }
    Ok(to_value(match check {
        Check::GatherCount => Field::new(behaviour::gather_count(&harness)),
        Check::NeighbouringStores => Field::new(behaviour::neighbouring_stores(&harness)),
        Check::SyncAllTwice => Field::new(behaviour::sync_all_twice(&harness, false)),
        Check::SyncAllCaptured => Field::new(behaviour::sync_all_twice(&harness, true)),
        Check::SelectAfterGatherMask => Field::new(behaviour::select_after_gather_mask(&harness)),
        Check::Gather16Bit => Field::new(behaviour::gather_16_bit(&harness)),
        Check::CastInt8 => Field::new(behaviour::cast_int8(&harness)),
        Check::CastInt16 => Field::new(behaviour::cast_int16(&harness)),
        Check::Overflow => Field::new(behaviour::overflow(&harness)),
        Check::RowsInFlight => Field::new(memory::rows_in_flight(&harness)),
        Check::Hugetlb => Field::new(memory::hugetlb(&harness)),
        Check::LargestRegistration => Field::new(memory::largest(&harness)),
        Check::RewrittenRow => Field::new(operator::rewritten_row(&harness)),
        _ => Field::new(operator::fault_code(&harness)),
    })?)
}
