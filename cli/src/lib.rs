//! The parts of the program `avsg`: traces, workloads, baseline policies, charts and subcommands.

mod array;
pub mod baseline;
mod command;
pub mod draw;
mod npz;
pub mod program;
pub mod results;
pub mod synth;
pub mod trace;
