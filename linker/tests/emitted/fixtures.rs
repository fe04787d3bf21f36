//! What the tests of emitted AscendC and those of emitted CUDA share: batches and their memory, steps of one request, mutants.

pub mod arrays;
pub mod compiled;
pub mod geometries;
pub mod harness;
#[path = "tapes/kernels.rs"]
pub mod kernels;
pub mod layer_memory;
pub mod mutants;
pub mod one_request;
#[path = "../shim/harness.rs"]
pub mod shim;
#[path = "../tape/native_equals_replay/step.rs"]
pub mod steps;
pub mod test_engine;
#[path = "../../../testkit/src/tier.rs"]
pub mod tier;
