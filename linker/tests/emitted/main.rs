//! The kernels that are emitted for the 910B, compiled against the shim and run.

mod append;
mod arrays;
mod compiled;
mod harness;
mod layer_memory;
mod mutants;
mod needed;
mod older_cann;
mod operator;
mod operator_compiler;
mod outputs;
mod requests;
#[path = "../shim/harness.rs"]
mod shim;
mod stage_one;
mod step;
#[path = "../tape/native_equals_replay/step.rs"]
#[expect(dead_code, reason = "only replay is used here")]
mod steps;
mod tapes;
mod test_engine;
#[expect(dead_code, reason = "this program takes no sample of a matrix")]
#[path = "../../../testkit/src/tier.rs"]
mod tier;
mod transfer;
