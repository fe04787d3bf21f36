//! Kernels as tapes: recorded, checked, replayed and written as text, and the folders and tools of CANN that build the text.

mod bridge;
mod kernel_text;
mod names;
mod native_equals_replay;
mod recording;
mod scratch;
#[path = "../../../testkit/src/tier.rs"]
mod tier;
mod toolchain;
mod wrong_kernels;
