//! `avsg-research estimate` times the emitted kernels on the clocks of the shim, whose prices are a model of an
//! Ascend 910B; nothing is measured.

mod code;
mod measured;
#[cfg(test)]
mod measured_tests;
mod options;
mod ours;
pub mod paper;
mod phase;
pub mod points;
mod ranges;
mod report;
mod show;
pub mod stage_two;
#[cfg(test)]
mod tests;

use anyhow::Result;

pub use options::Options;
use report::{Report, constants_used};

/// Computes the estimate and prints it.
pub fn run(options: &Options) -> Result<()> {
    options
        .output
        .check(options.trace.as_deref().into_iter().chain(options.from.as_deref()), [])?;
    if options.constants {
        let used = constants_used(&options.used_constants(options.measured()?.as_ref())?);
        return options.output.write(&used, || show::constants(&used));
    }
    let report = compute(options)?;
    options.output.write(&report, || show::report(&report))
}

/// Computes the estimate.
pub fn compute(options: &Options) -> Result<Report> {
    report::run(options, &options.inputs()?)
}
