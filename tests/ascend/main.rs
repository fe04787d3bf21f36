//! The Ascend device over the simulated runtime, compared with the CPU device.

mod caller_buffers;
mod caller_streams;
mod conformance;
mod discard;
mod embedded_kernels;
mod engine_pair;
mod faults;
mod forks;
mod harness;
mod indexers;
mod invalidate;
mod layouts;
mod plan_order;
mod prerequisites;
mod queued_faults;
mod random_workload;
mod restore;
mod rust_kernels;
mod scenario;
mod shared_context;
mod slot_shapes;
mod smallest_runtime;
mod streams;
mod trace_workload;
mod traces;
mod wrong_words;
