//! The kernels that are emitted for GPUs, compiled against the shim and run.

mod batch;
#[path = "../emitted/fixtures.rs"]
#[expect(dead_code, reason = "the kernels here are no AscendC")]
mod fixtures;
mod gpu;
mod mutants;
mod nvcc;
mod stage_one;
mod tapes;
mod wrong;

use fixtures::*;
