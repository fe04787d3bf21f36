//! The Ascend device over the simulated runtime gives what the CPU device gives.

mod acl_library;
mod caller_buffers;
mod caller_memory;
mod embedded_kernels;
mod faults;
mod harness;
mod large_batches;
mod layouts;
mod plan_order;
mod prerequisites;
mod random_calls;
mod random_workload;
mod restore;
mod rust_kernels;
mod small;
mod strategies;
mod streams;
mod workloads;
mod wrong_words;
