//! AVSG: exact sparse gather of top-K selected KV rows from host memory into a small device buffer.

pub mod ascend;
mod backend;
mod batch;
pub mod buffer;
pub mod copy;
pub mod cpu;
pub mod cpus;
pub mod engine;
pub mod error;
pub mod geometry;
mod mapping;
pub mod memory;
pub mod plan;
pub mod pool;
mod queued;
mod resources;
pub mod rows;

pub use avsg_device as device;
pub use error::{Error, Result};

/// Compiles the README's code.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
