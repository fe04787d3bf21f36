//! AVSG: exact sparse gather of top-K selected KV rows from host memory into a small device buffer.

pub mod buffer;
pub mod copy;
pub mod error;
mod mapping;
pub mod memory;
pub mod pool;
pub mod rows;

pub use avsg_device as device;
pub use error::{Error, Result};
