//! The program's subcommands, and the options and outputs that they share.

pub mod bench;
pub mod doctor;
pub mod emit;
pub mod estimate;
mod geometry;
pub mod info;
pub mod opp;
mod output;
pub mod replay;
mod soc;
pub mod synth;
