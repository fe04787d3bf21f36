//! AVSG: exact sparse gather of top-K selected KV rows from host memory into a small device buffer.

pub mod error;

pub use avsg_device as device;
pub use error::{Error, Result};
