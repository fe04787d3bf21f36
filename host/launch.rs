//! How a launch reaches the cores of a device.

pub mod cpu;
