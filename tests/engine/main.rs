//! The engine on the CPU and what it consists of: pool, buffer, workers, copiers, and the tables of its requests; the
//! goldens of the emitted kernels; and the names of the project.

mod bad_batches;
mod begun;
mod copy;
mod goldens;
mod learned;
mod names;
mod pool;
#[cfg(target_arch = "x86_64")]
mod refused_calls;
mod sequences;
#[path = "../ascend/strategies.rs"]
mod strategies;
mod workers;
mod worst_case;
