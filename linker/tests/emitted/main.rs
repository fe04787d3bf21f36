//! The kernels that are emitted for the 910B, compiled against the shim and run.

mod append;
mod arrays;
mod compiled;
#[path = "tapes/edge_kernels.rs"]
mod edge_kernels;
mod emitted_stage_one;
mod emitted_step;
mod geometries;
mod harness;
mod layer_memory;
mod mutants;
mod needed;
mod older_cann;
mod one_request;
mod operator;
#[path = "../tape/replay.rs"]
mod replay;
mod requests;
#[path = "../shim/harness.rs"]
mod shim;
#[expect(dead_code, reason = "no native machine runs here")]
#[path = "../tape/native_equals_replay/random_step.rs"]
mod steps;
mod tapes;
mod test_engine;
#[expect(dead_code, reason = "no sample is taken of a matrix")]
#[path = "../../../tests/kit/src/tier.rs"]
mod tier;
mod transfer;

use arrays::*;
use compiled::*;
use geometries::*;
use harness::*;
use layer_memory::*;
use mutants::*;
use one_request::*;
use shim::*;
use steps::*;
use test_engine::*;
