//! The CPU device: threads stand in for the cores, and process memory for device memory.

mod background;
mod choose;
mod cold;
mod copies;
mod cores;
mod device;
pub mod machine;
mod records_copy;
mod records_read;
mod stages;
pub mod standalone_table;
mod threads;
mod wait;
pub mod worker_pool;

pub(crate) use device::Cpu;
