//! Types that own handles of the runtime and release them on drop. Every method that calls the
//! runtime returns the error of the call; `# Errors` lists further errors only.
//!
//! A `Drop` cannot return an error, so it stores the error in the [`Context`], where
//! [`Context::take_error`] or [`Context::finish`] returns it. Calls on other objects of the context
//! do not, because they have not failed. A release that failed is
//! tried once more, because a failed call of the runtime has changed nothing; both errors are
//! stored.

mod context;
mod event;
mod kernel;
mod memory;
mod private_file;
mod registration;
mod stream;

pub use crate::device_arrays::RawStream;
pub use context::{Context, Current};
pub use event::Event;
pub use kernel::{Args, Binary, Function};
pub use memory::{DeviceMemory, PinnedMemory};
pub use registration::Registration;
pub use stream::{Graph, Stream};
