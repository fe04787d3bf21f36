//! One vector core of a 910B: lowers a checked tape to its calls, places its buffers, orders its units,
//! and writes AscendC. All C++ text and all that knows CANN is in this module.

mod aiv;
pub mod cann;
mod declare;
mod functions;
mod geometry;
pub mod kernels;
mod learn;
pub mod limits;
mod live;
mod lower;
mod names;
pub mod object;
mod one_file;
pub mod opp;
mod print;
mod request;
mod simplify;
pub mod soc;
pub(crate) mod stage_one;
mod sync;
mod table;
mod tiling;
pub mod toolchain;
pub mod ub;

pub use names::camel;
pub use stage_one::{Failed, StageOneText, stage_one, stage_one_within, text};

use avsg_device::params::Params;
use kernels::{Abi, Kernels, kernels};

/// Returns all kernels of a geometry as AscendC.
///
/// # Errors
/// If Stage One breaks a rule of the kernel language, or does not fit the unified buffer.
pub fn ascendc(p: &Params, abi: Abi) -> Result<Kernels, Failed> {
    Ok(kernels(p, &stage_one(p)?, abi)?)
}
