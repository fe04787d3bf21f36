//! The host pool: every row of every layer, in memory that all processes of a node share.
//!
//! Each layer and segment has `rows` rows of `stride` bytes. They are stored in chunks of a power
//! of two of rows, so that a row's chunk is a shift and no row crosses a chunk. A chunk is the unit
//! that a device registers: it is contiguous, begins on a page, and stays below the size that
//! drivers accept. All chunks of a pool are ranges of one memfd: one memfd per chunk would need
//! thousands of descriptors, and no socket message can carry that many.
//!
//! A pool with [`PoolConfig::file`] has its rows in a file or on a block device instead ([`disk`](crate::disk)):
//! they have no address, and [`HostPool::flush`] makes them durable.
//!
//! # When a row may be read or written
//!
//! The memory is shared by threads and by processes, so no Rust reference into it exists.
//! [`HostPool::write_row`] and [`HostPool::read_row`] copy word by word with relaxed atomics: a read beside a write of the same row may return a mix of old and new
//! bytes, which is not undefined behaviour. The raw pointers of [`HostPool::view`] are for plain copies. Code that dereferences one
//! must ensure that no thread or process writes that row meanwhile. The engine ensures it by order:
//! a row is written by the step that made it and selected by later steps only.

mod atomic_copy;
mod chunk;
mod file;
mod geometry;
mod host;
mod layout;
mod on_disk;
mod share;

pub use crate::disk::PoolFile;
pub use chunk::{Chunk, RowView};
pub(crate) use chunk::{DeviceStart, Start};
pub(crate) use geometry::{Geometry, SegmentLayout};
pub use geometry::{LaidOut, Pages, PoolConfig};
pub use host::{HostPool, Role};
pub use layout::{HostLayout, Part, Region};
pub use share::{DESC_BYTES, PoolExport};
