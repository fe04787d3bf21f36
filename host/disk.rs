//! Rows in a file or on a block device: the store behind a pool with [`PoolConfig::file`](crate::pool::PoolConfig::file).
//!
//! - [`Layout`] says where each row is; rows that are selected together are one record.
//! - [`Store`] has the file. Rows are appended to its queue of writes and read by ranges.
//! - [`Reader`] reads many records at once, all in flight.
//! - [`Disk`] and [`Queue`] are the system calls, which a test can replace.
//!
//! # What is never wrong
//!
//! A row is whole if and only if its checksum, seeded by the file and the row's number, is that of its bytes.
//! Any other row is an error that names it: one that was never written, one that was lost with a process, and
//! one whose bytes are damaged. So a file needs no record of what was written, and a row is committed by its
//! own write. After a loss of power each row is as it was flushed, as a later write left it, or reported.
//!
//! A kept file may also have [`Session`]s, each with the number of its tokens that last. A token counts only when its
//! rows in all layers and its data are durable, and they cannot be written while it does.
//!
//! A process knows more about its own writes: a read of a row whose write is under way gives the new bytes, and
//! one whose write was refused is reported until it is written again.

mod aligned;
mod bits;
mod config;
mod create;
mod entries;
mod file;
mod flight;
mod header;
mod info;
mod io;
mod open;
mod range;
mod reader;
mod record_layout;
mod records;
mod session;
mod store;
mod tokens;
mod write_queue;

pub(crate) use bits::Bits;
pub use config::{PoolFile, PoolSessions};
pub use info::{CountsOf, DiskInfo, DiskStats};
pub use io::{Completed, Direction, Disk, Operation, Piece, Queue};
pub use reader::Reader;
pub use record_layout::{Layout, Shape};
pub use session::Session;
pub use store::{Store, Wrap};
