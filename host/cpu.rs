//! The CPU device: threads play the cores, process memory is the device's.

mod choose;
mod device;
pub mod machine;
pub mod stage;
pub mod worker_pool;
