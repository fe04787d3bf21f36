//! The host pool: every row of every layer, in shared memory that the ranks of a node map once.
//!
//! For each layer and segment there are `rows` rows of `stride` bytes, in chunks of a power of two
//! of rows, so that a row's chunk is a shift and no row crosses a chunk. A chunk is what a device
//! registers: it is contiguous, begins on a page, and stays below the size that drivers accept.
//! The chunks of a pool are ranges of one memfd, because a memfd each would need thousands of
//! descriptors and no socket message carries that many.
//!
//! # Who may touch a row when
//!
//! The memory is shared by threads and by processes, so no reference into it ever exists.
//! [`HostPool::write_row`], [`HostPool::write_segment`] and [`HostPool::read_row`] copy word by
//! word with relaxed atomics: a read beside a write of the same row may return a mix of old and new
//! bytes, and is never undefined. The raw pointers of [`HostPool::row_ptr`], [`HostPool::row_mut`]
//! and [`HostPool::view`] are for whole-speed copies, and whoever dereferences them promises that
//! no thread or process writes that row meanwhile. The engine keeps the promise by order: a row is
//! written by the step that made it and selected by later steps only.

mod geometry;
mod host;
mod ladder;
mod lease;
mod pages;
mod share;
mod words;

pub use geometry::{DEFAULT_CHUNK_BYTES, PoolConfig};
pub use host::{Chunk, HostPool, Role, RowView};
pub use pages::Pages;
pub use share::{DESC_BYTES, PoolDesc, PoolExport};
