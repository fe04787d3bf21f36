//! Kernels as tapes: recorded, checked, replayed and written as text, and the folders and tools of CANN that build the text.

mod bridge;
mod kernel_text;
mod names;
mod native_equals_replay;
#[path = "../emitted/outputs.rs"]
#[expect(dead_code, reason = "only the geometries are used here")]
mod outputs;
mod recording;
mod scratch;
#[expect(dead_code, reason = "this program takes no sample of a matrix")]
#[path = "../../../testkit/src/tier.rs"]
mod tier;
mod toolchain;
mod wrong_kernels;

use native_equals_replay::step as steps;
