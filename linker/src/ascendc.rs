//! Writes a checked kernel as AscendC. All C++ text is in this module.

pub mod code_size;
mod declare;
pub mod functions;
pub mod kernels;
pub mod limits;
mod one_file;
mod print;
mod request;
pub(crate) mod stage_one;
mod table;

pub use crate::lower::camel;
pub use print::statement;
pub use stage_one::{Failed, StageOneText, stage_one, stage_one_with};

use avsg_device::params::Params;
use kernels::{Abi, Kernels, kernels};

/// Returns all kernels of a geometry as AscendC.
///
/// # Errors
/// If Stage One breaks a rule of the kernel language, or does not fit the unified buffer.
pub fn ascendc(p: &Params, abi: Abi) -> Result<Kernels, Failed> {
    Ok(kernels(p, &stage_one(p)?, abi)?)
}
