//! The parts of the program `avsg`: traces, workloads, baseline policies, charts and subcommands.

// The macros of this module come first, because they replace standard ones in all modules below.
#[macro_use]
pub mod terminal;

mod array;
pub mod baseline;
mod checks;
pub mod command;
mod disk;
pub mod draw;
pub mod npz;
pub mod output_file;
pub mod program;
pub mod synth;
pub mod trace;
