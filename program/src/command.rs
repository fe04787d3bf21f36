//! The subcommands of the program, and the options and output that they share.

pub(crate) mod bench;
mod busy;
pub(crate) mod compare;
pub mod doctor;
pub(crate) mod emit;
pub mod engine_options;
pub(crate) mod info;
mod lifetimes;
mod model;
pub(crate) mod opp;
pub mod output;
pub(crate) mod replay;
pub(crate) mod size;
pub(crate) mod synth;
pub mod trace_options;
mod traces;
