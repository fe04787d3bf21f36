//! From a kernel to a tape, which is checked, replayed, and lowered to AscendC or CUDA text.
//!
//! [`record`] runs a kernel of `avsg-device` on a machine that only writes down its operations.
//! [`check`] refuses a [`tape`] that breaks a law of the kernel language (`avsg_device::machine`).
//! [`replay`] interprets a tape and thereby defines what every op means. [`ascend`] lowers it to
//! one vector core and emits text; [`cuda`] emits text for a block of threads. [`bridge`] is the entry point of a build script.

#![forbid(unsafe_code)]

pub mod ascend;
pub mod bridge;
pub mod check;
pub mod cuda;
mod expr;
mod launch;
mod learn;
mod live;
mod names;
mod one_file;
pub mod record;
pub mod replay;
mod request;
mod simplify;
pub mod tape;
