//! The parts of the program `avsg`: traces, workloads, baseline policies and subcommands.

// The macros of this module come first, because they replace standard ones in all modules below.
#[macro_use]
pub mod terminal;

pub mod command;
pub mod program;
mod quantity;

/// The version, and the commit that the program was built from if it is known.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("AVSG_COMMIT"));

pub use avsg_measure::{baseline, npz, output_file, synth, trace};
use avsg_measure::{checks, contenders, disk, stats, throughput, turns};
