//! Where the rows of a pool are on a disk, and how they are read and written.

use std::path::PathBuf;
use std::time::Duration;

/// The file or the block device of a pool whose rows are on a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolFile {
    /// A folder for a private file, the path of a file that does not exist, or a block device. The last
    /// part of the path is not followed if it is a link.
    pub path: PathBuf,
    /// Whether the file stays after the pool is dropped. A file that is not kept has no name from its
    /// creation on, and what is on a block device that is not kept cannot be opened again.
    pub keep: bool,
    /// Whether reads and writes go through the page cache. Otherwise they use O_DIRECT.
    pub buffered: bool,
    /// Whether reads and writes use io_uring, where the kernel allows it. Otherwise they use `preadv`
    /// and `pwritev`.
    pub io_uring: bool,
    /// Bytes of the queue of writes, at most 256 MiB; it holds at least 8 records. 0: those of 1024 records with their
    /// padding, at least 8 MiB and at most 256 MiB.
    pub queue_bytes: usize,
    /// The longest time without a completed read or write after which a call returns an error. A call
    /// of `preadv` or `pwritev` cannot be interrupted, so without io_uring the limit bounds the waits
    /// between them only.
    pub timeout: Duration,
    /// The sessions of a new file that is kept. One that is opened has those that it was made with.
    pub sessions: PoolSessions,
}

/// The sessions that a kept file has room for. By default it has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolSessions {
    /// The number of sessions.
    pub count: usize,
    /// Rows of a block: a session has whole blocks.
    pub rows: usize,
    /// The most bytes of the caller for each session.
    pub bytes: usize,
    /// Bytes of the caller for each token; 0: none.
    pub token_bytes: usize,
}

impl PoolFile {
    /// Returns a private file in the folder `path`, or on this block device, with O_DIRECT and io_uring, the default
    /// queue of writes and a limit of 30 seconds.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            keep: false,
            buffered: false,
            io_uring: true,
            queue_bytes: 0,
            timeout: Duration::from_secs(30),
            sessions: PoolSessions::default(),
        }
    }
}
