//! Kernels as tapes: recorded, checked and written as text, and the folders and tools of CANN that build the text.

mod bridge;
mod kernel_text;
mod recording;
mod scratch;
mod toolchain;
mod wrong_kernels;
