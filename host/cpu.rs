//! The CPU device: threads stand in for the cores, and process memory for device memory.

mod choose;
mod device;
pub mod machine;
pub mod stage;
pub mod worker_pool;
