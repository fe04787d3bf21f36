//! `avsg doctor` examines an Ascend device: it builds the kernels, runs each of them alone, examines
//! what the documentation leaves open, and measures times.
//!
//! This process never calls the runtime. Every check runs in a process of its own with a time
//! limit, so a kernel or a driver that hangs stops one check, and the report is still written.

mod check;
mod exam;
mod facts;
mod harness;
mod kernel_checks;
mod options;
mod placed;
mod private;
mod probe;
mod report;
mod target;
mod times;
mod watch;
mod words;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, to_value};

use super::output::with_origin;
use check::{Check, CheckKind};
use harness::Harness;
pub use options::Options;
use report::Line;

/// Examines the device and prints the report, or runs one check for another process.
pub fn run(options: &Options) -> Result<ExitCode> {
    if let Some([name, folder]) = options.check.as_deref() {
        watch::progress(&format!("the check {name}"));
        watch::answer(&find(options, name, Path::new(folder))?);
        return Ok(ExitCode::SUCCESS);
    }
    options.output.check(options.target.library.as_deref())?;
    let report = exam::examine(options)?;
    if let Some(reason) = report.no_device.as_ref().filter(|_| !options.output.shows_text()) {
        eprintln!("skipped: no device: {reason}");
    }
    let json = private::without_names(with_origin(&report)?);
    options.output.put(&json, || report.page())?;
    Ok(if report.kernels_are_good() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Runs a check in this process, and returns the JSON of its result: the device, or the check's lines of the report.
fn find(options: &Options, name: &str, folder: &Path) -> Result<Value> {
    let check = Check::named(name);
    let harness =
        Harness::new(&options.target, folder, check.map_or(|plain| plain, |check| check.vary));
    let Some(check) = check else {
        let device = harness.and_then(|harness| harness.describe());
        return Ok(to_value(device.map_err(|error| {
            // The files that were tried, if none of them is a runtime.
            let tried = match error.downcast_ref() {
                Some(avsg::Error::Unavailable { tried, .. }) => Some(tried.clone()),
                _ => None,
            };
            (format!("{error:#}"), tried)
        }))?);
    };
    let harness = harness?;
    Ok(to_value(match check.work {
        CheckKind::Kernels(kernels) => vec![(check.name, kernel_checks::run(&harness, kernels))],
        CheckKind::Fact(fact) => vec![(check.name, Line::new(fact(&harness)))],
        CheckKind::Times => times::measure(&harness, check.name),
    })?)
}
