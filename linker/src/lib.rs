//! From a kernel to a tape, which is checked, replayed, and lowered to AscendC text.
//!
//! [`record`] runs a kernel of `avsg-device` on a machine that only writes down its operations.
//! [`check`] refuses a [`tape`] that breaks a law of the kernel language (`avsg_device::machine`).
//! [`replay`] interprets a tape and thereby defines what every op means. [`ascendc`] emits text
//! from it.

#![forbid(unsafe_code)]

pub mod aiv;
pub mod ascendc;
pub mod bridge;
pub mod cann;
pub mod check;
pub mod cost;
mod lower;
pub mod opp;
pub mod record;
pub mod replay;
pub mod soc;
mod sync;
pub mod tape;
pub mod toolchain;
pub mod ub;
