//! From a checked kernel to the text of a device's language.

pub mod kernels;
mod stage_one;

pub use stage_one::{Failed, StageOneText, stage_one};
