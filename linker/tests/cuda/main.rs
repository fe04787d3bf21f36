//! The kernels that are emitted for GPUs, compiled against the shim and run.

#[path = "../emitted/arrays.rs"]
mod arrays;
mod batch;
#[path = "../emitted/compiled.rs"]
#[expect(dead_code, reason = "the kernels here are no AscendC")]
mod compiled;
mod gpu;
#[path = "../emitted/harness.rs"]
#[expect(dead_code, reason = "the kernels here are no AscendC")]
mod harness;
#[path = "../emitted/tapes/kernels.rs"]
mod kernels;
#[path = "../emitted/layer_memory.rs"]
mod layer_memory;
mod mutants;
mod nvcc;
#[path = "../emitted/outputs.rs"]
mod outputs;
#[path = "../shim/harness.rs"]
#[expect(dead_code, reason = "the kernels here are no AscendC")]
mod shim;
mod stage_one;
#[path = "../tape/native_equals_replay/step.rs"]
#[expect(dead_code, reason = "no step here defers refreshes")]
mod steps;
#[path = "../emitted/mutants.rs"]
#[expect(dead_code, reason = "the kernels here are no AscendC")]
mod switches;
mod tapes;
#[path = "../emitted/test_engine.rs"]
#[expect(dead_code, reason = "the kernels here are no AscendC")]
mod test_engine;
#[expect(dead_code, reason = "this program takes no sample of a matrix")]
#[path = "../../../testkit/src/tier.rs"]
mod tier;
mod wrong;
