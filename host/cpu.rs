//! The CPU device: threads stand in for the cores, and process memory for device memory.

mod choose;
mod device;
pub mod machine;
mod outputs;
pub mod stage;
mod transfer;
pub mod worker_pool;
