//! The Ascend device: ACL, found at run time, and an engine's calls as kernels in its streams.

pub mod acl;
mod arrays;
mod device;
mod embedded;
mod health;
mod kernels;
mod launch;
mod options;
mod pool;
#[cfg(feature = "ascend-sim")]
pub mod simulated;

pub use options::AscendOptions;
pub use pool::{RegisteredPool, WeakRegisteredPool};
