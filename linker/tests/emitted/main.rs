//! The kernels that are emitted for the 910B, compiled against the shim and run.

mod append;
#[expect(dead_code, reason = "no native machine runs here, and no sample is taken of a matrix")]
#[path = "fixtures.rs"]
mod fixtures;
mod needed;
mod older_cann;
mod operator;
mod requests;
mod stage_one;
mod step;
mod tapes;
mod transfer;

use fixtures::*;
