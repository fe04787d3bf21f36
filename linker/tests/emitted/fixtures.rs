//! What the tests of emitted AscendC and those of emitted CUDA share: batches and their memory, steps of one request, mutants.

mod arrays;
mod compiled;
mod geometries;
mod harness;
#[path = "tapes/kernels.rs"]
pub mod kernels;
mod layer_memory;
pub mod mutants;
mod one_request;
#[path = "../shim/harness.rs"]
mod shim;
#[path = "../tape/native_equals_replay/step.rs"]
pub mod steps;
mod test_engine;
#[path = "../../../testkit/src/tier.rs"]
pub mod tier;

pub use arrays::*;
pub use compiled::*;
pub use geometries::*;
pub use harness::*;
pub use layer_memory::*;
pub use mutants::*;
pub use one_request::*;
pub use shim::*;
pub use steps::*;
pub use test_engine::*;
