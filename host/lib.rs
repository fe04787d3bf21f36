//! AVSG: exact sparse gather of top-K selected KV rows from host memory into a small device buffer.

pub mod acl;
#[cfg(feature = "cli")]
pub mod baseline;
pub mod buffer;
pub mod capi;
#[cfg(any(feature = "cli", fuzzing))]
pub mod content;
pub mod copy;
#[cfg(feature = "cli")]
pub mod draw;
pub mod engine;
pub mod error;
pub mod geometry;
pub mod launch;
pub mod machine;
mod mapping;
pub mod memory;
#[cfg(feature = "cli")]
mod npz;
pub mod plan;
pub mod pool;
#[cfg(feature = "cli")]
pub mod results;
pub mod rows;
#[cfg(any(feature = "cli", fuzzing))]
pub mod splitmix;
pub mod stage;
#[cfg(feature = "cli")]
pub mod synth;
#[cfg(feature = "cli")]
pub mod trace;

pub use avsg_device as device;
pub use error::{Error, Result};

/// Compiles the README's code.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
