//! The times that the clocks of the model give for the measured work, on a simulated device in this process.

use std::collections::BTreeMap;

use anyhow::Result;
use avsg_linker::ascend::soc::Soc;
use avsg_sim::{Options, Session};

use super::check::Check;
use super::harness::{Harness, build_simulated, geometry};
use super::times::measure;
use crate::constants::Constants;

/// Returns the microseconds of each time of the report that the clocks give with these constants, by its name, for
/// kernels of K ids and S slots on a chip with this number of vector cores.
///
/// # Errors
/// If the kernels do not fit the chip, or there is no C++ compiler.
pub fn times(
    constants: &Constants,
    soc: &Soc,
    cores: u32,
    k: u32,
    slots: u32,
) -> Result<BTreeMap<String, f64>> {
    let params = geometry(k, slots);
    let folder = build_simulated(&params)?;
    let clock = Some(constants.clock(soc));
    let _session = Session::new(Options { cores, clock, ..Options::default() });
    let harness = Harness::simulated(params, &folder)?;
    let measured = Check::TIMES.into_iter().flat_map(|check| measure(&harness, check));
    Ok(measured.filter_map(|(name, time)| Some((name, time.ok()?.us))).collect())
}
