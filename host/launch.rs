//! How a launch reaches the cores of a device.

pub mod acl;
pub mod cpu;
