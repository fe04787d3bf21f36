//! The CPU device: threads stand in for the cores, and process memory for device memory.

mod background;
mod choose;
mod cold;
mod cores;
mod device;
mod fresh_copy;
pub mod machine;
mod records_copy;
mod records_read;
mod slots_copy;
mod stages;
pub mod standalone_table;
mod threads;
mod transfer;
mod wait;
pub mod worker_pool;

pub(crate) use device::Cpu;
