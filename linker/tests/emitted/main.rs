//! The kernels that are emitted for the 910B, compiled against the shim and run.

mod append;
mod arrays;
mod compiled;
#[path = "../../../device/tests/kernels/decoding.rs"]
mod decoding;
#[path = "tapes/edge_kernels.rs"]
mod edge_kernels;
mod emitted_stage_one;
mod emitted_step;
mod harness;
mod layer_memory;
mod mutants;
mod needed;
#[expect(dead_code, reason = "no step runs on another CPU machine")]
#[path = "../../../device/tests/kernels/one_request.rs"]
mod one_request;
mod operator;
mod requests;
#[expect(dead_code, reason = "no session of the simulated runtime runs them here")]
#[path = "../../../tests/ascend/rust_kernels.rs"]
mod rust_kernels;
#[path = "../shim/harness.rs"]
mod shim;
#[expect(dead_code, reason = "the tests here use a part")]
#[path = "../../../program/measure/src/splitmix.rs"]
mod splitmix;
mod tapes;
mod test_engine;
#[expect(dead_code, reason = "no sample is taken of a matrix")]
#[path = "../../../tests/kit/src/tier.rs"]
mod tier;
mod transfer;

use arrays::*;
use compiled::*;
use harness::*;
use layer_memory::*;
use mutants::*;
use shim::*;
use splitmix::SplitMix64;
use test_engine::*;
