//! The kernels as they are emitted for the 910B, compiled against the shim and executed.

mod append;
mod engine;
mod mutants;
mod pool;
mod requests;
#[path = "../shim/harness.rs"]
mod shim;
mod stage_one;
mod stand;
mod step;
#[path = "../native_equals_replay/step.rs"]
#[expect(dead_code, reason = "another file's module: only replay is used here")]
mod steps;
#[path = "../../../testkit/src/tier.rs"]
mod tier;
mod together;
mod transfer;
