//! From a kernel to a tape: recorded, checked, and replayed.
//!
//! [`record`] runs a kernel of `avsg-device` on a machine that only writes down what it is asked;
//! [`check`] refuses a [`tape`] that breaks a law of the kernel language; [`replay`] executes one
//! slowly, and thereby defines what every op means; [`ascendc`] makes text of it.

#![forbid(unsafe_code)]

pub mod aiv;
pub mod ascendc;
pub mod bridge;
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
