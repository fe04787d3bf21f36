//! Types that release what they hold.
//!
//! A `Drop` cannot return an error, so it leaves it with the [`Context`], and the next call on the
//! context, or [`Context::take_error`], reports it. A release that reported an error is tried once
//! more: a call of the runtime that failed did nothing, and a second failure is the last word.

mod context;
mod event;
mod kernel;
mod memory;
mod private_file;
mod registration;
mod stream;

pub use crate::queued::RawStream;
pub use context::{Context, Current};
pub use event::Event;
pub use kernel::{Args, Binary, Function};
pub use memory::{DeviceMemory, PinnedMemory};
pub use registration::Registration;
pub use stream::{Graph, Stream};
