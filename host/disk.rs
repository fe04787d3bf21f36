//! Rows in a file or on a block device: the store behind a pool with [`PoolConfig::file`](crate::pool::PoolConfig::file).
//!
//! - [`Layout`] says where each row is; rows that are selected together are one record.
//! - [`Store`] has the file. Rows are appended to its queue of writes and read one by one.
//! - [`Reader`] reads many records at once, all in flight.
//! - [`Disk`] and [`Queue`] are the system calls, which a test can replace.
//!
//! # What is never wrong
//!
//! A row that was never written, whose write failed or whose bytes are damaged is an error that names it.
//! A read of a row whose write is under way gives the new bytes. What was not flushed may be lost with the
//! process; after a reopen each row is whole or reported.

mod aligned;
mod bits;
mod blocking;
mod checksum;
mod commit;
mod config;
mod create;
mod entries;
mod file;
mod flight;
mod header;
mod info;
mod io;
mod layout;
mod open;
mod reader;
mod records;
mod ring;
mod stamps;
mod store;
mod write_queue;

pub(crate) use aligned::ALIGNMENT;
pub use config::{DEFAULT_QUEUE_BYTES, DEFAULT_TIMEOUT, PoolFile};
pub use info::{DiskInfo, DiskStats};
pub use io::{Completed, Direction, Disk, Operation, Piece, Queue};
pub use layout::{Layout, Shape};
pub use reader::Reader;
pub use store::{Store, Wrap};
