//! From a kernel to a tape, which is checked and lowered to AscendC text.
//!
//! [`record`] runs a kernel of `avsg-device` on a machine that only writes down its operations.
//! [`check`] refuses a [`tape`] that breaks a law of the kernel language (`avsg_device::machine`).
//! [`ascend`] lowers it to one vector core and emits text. [`bridge`] is the entry point of a build script.

#![forbid(unsafe_code)]

pub mod ascend;
pub mod bridge;
pub mod check;
pub mod record;
pub mod tape;
