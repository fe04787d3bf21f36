//! The subcommands of the program, and the options and output that they share.

pub mod bench;
mod busy;
pub mod compare;
pub mod doctor;
pub mod emit;
pub mod estimate;
mod geometry;
pub mod info;
pub mod opp;
mod output;
pub mod paper;
pub mod replay;
pub mod serve;
pub mod size;
mod soc;
pub mod synth;
mod trace_options;
