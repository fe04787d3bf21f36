//! Tests of the program: its subcommands as a user runs them, and the traces, policies and workloads that
//! they are made of. They are one test program, which is linked once.

mod baseline;
mod bench;
mod compare;
mod doctor;
mod emit;
mod manner;
mod outputs;
mod policy;
mod refusals;
mod replay;
mod rows_on_disk;
mod size;
mod support;
mod synth;
mod trace_files;
