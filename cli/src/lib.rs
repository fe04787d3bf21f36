//! What the program `avsg` is made of: traces, workloads, policies to compare with, charts.

pub mod baseline;
mod command;
pub mod draw;
mod npz;
pub mod program;
pub mod results;
pub mod synth;
pub mod trace;
