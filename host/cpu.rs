//! The CPU device: threads stand in for the cores, and process memory for device memory.

mod choose;
mod cores;
mod device;
mod launch;
pub mod machine;
mod outputs;
pub mod stage;
mod threads;
mod transfer;
mod wait;
pub mod worker_pool;
