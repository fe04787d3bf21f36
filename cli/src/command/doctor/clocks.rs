//! The times that the clocks of the model give for the measured work, on a simulated device in this process.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use avsg_linker::ascend::code_size::{Calls, Code};
use avsg_linker::ascend::kernels::{Abi, kernels};
use avsg_linker::ascend::soc::Soc;
use avsg_linker::ascend::stage_one;
use avsg_sim::{Options, Session};

use super::check::Check;
use super::harness::{Harness, build_simulated, geometry};
use super::times::measure;
use crate::constants::{Constants, Name};

/// Bytes of a line of the instruction cache.
const LINE_BYTES: u32 = 128;

/// Returns the microseconds that a kernel of K ids and S slots takes longer, by these constants, if each line of
/// its code is fetched once and waited for. [`times`] takes all code to be in the instruction cache.
///
/// # Errors
/// If the kernels do not fit the chip, or none has that name.
pub fn fetches(constants: &Constants, soc: &Soc, k: u32, slots: u32, kernel: &str) -> Result<f64> {
    let params = geometry(k, slots);
    let all = kernels(&params, &stage_one(&params)?, Abi::Direct)?;
    let found = all.kernels.iter().find(|found| found.name == kernel);
    let text = &found.with_context(|| format!("{kernel} is no kernel"))?.text;
    let code = Code::of(&all.whole(text), kernel, Calls::Marked);
    Ok(soc.us(f64::from(code.bytes().div_ceil(LINE_BYTES)) * constants.get(Name::Fetch)))
}

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
