//! AVSG: exact sparse gather of top-K selected KV rows from host memory into a small device buffer.

#[cfg(feature = "cli")]
pub mod baseline;
#[cfg(feature = "cli")]
pub mod content;
#[cfg(feature = "cli")]
pub mod draw;
pub mod error;
#[cfg(feature = "cli")]
mod npz;
#[cfg(feature = "cli")]
pub mod results;
#[cfg(feature = "cli")]
pub mod splitmix;
#[cfg(feature = "cli")]
pub mod synth;
#[cfg(feature = "cli")]
pub mod trace;

pub use avsg_device as device;
pub use error::{Error, Result};
