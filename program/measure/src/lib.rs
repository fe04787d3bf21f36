//! What the program `avsg` measures: traces, workloads, baseline policies, and every loop that is timed or runs
//! over a trace. This crate is optimised, and the rest of the program, which is compiled faster without, is not.

mod array;
pub mod baseline;
pub mod batch;
pub mod checks;
pub mod contenders;
pub mod content;
pub mod device_arrays;
pub mod disk;
pub mod exact;
pub mod fresh;
pub mod npz;
pub mod output_file;
pub mod splitmix;
pub mod stats;
pub mod synth;
pub mod throughput;
pub mod trace;
pub mod turns;
