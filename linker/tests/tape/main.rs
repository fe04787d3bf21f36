//! Kernels as tapes: recorded, checked, replayed and written as text, and the folders and tools of CANN that build the text.

mod bridge;
#[path = "../emitted/geometries.rs"]
mod geometries;
mod kernel_text;
mod names;
mod native_equals_replay;
mod recording;
mod replay;
mod scratch;
#[expect(dead_code, reason = "this program takes no sample of a matrix")]
#[path = "../../../tests/kit/src/tier.rs"]
mod tier;
mod toolchain;
mod wrong_kernels;

use native_equals_replay::random_step as steps;
