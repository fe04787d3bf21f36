//! The Ascend device: the ACL runtime, which is loaded at run time, and kernels that carry out an
//! engine's calls in its streams.
//!
//! [`Engine::on_ascend`](crate::engine::Engine::on_ascend) makes an engine from a
//! [`RegisteredPool`] and [`AscendOptions`].

pub mod acl;
mod arrays;
mod device;
mod kernels;
mod launch;
mod options;
mod pool;
mod readback;
#[cfg(feature = "ascend-sim")]
pub mod simulated;
pub mod sizes;
mod slots;
mod staging;

pub(crate) use device::Ascend;
pub use options::AscendOptions;
pub use pool::RegisteredPool;
