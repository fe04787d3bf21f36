//! What a store tells about its file and about what it has read and written.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::config::PoolFile;

/// The file of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskInfo {
    /// The file, or the folder of a file without a name, with the sessions that a kept file has.
    pub file: PoolFile,
    /// Whether reads and writes use io_uring; otherwise `preadv` and `pwritev`.
    pub io_uring: bool,
    /// Bytes of the block that records are padded to.
    pub block: usize,
    /// The alignment in bytes that memory must have to be read into or written from.
    pub memory_alignment: usize,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Bytes of the longest record.
    pub record_bytes: usize,
    /// The most layers that one record holds a row of.
    pub record_layers: usize,
    /// Share of the records' bytes that is padding, from 0 to 1.
    pub padding: f64,
    /// Bytes of the queue of writes.
    pub queue_bytes: usize,
    /// The most records that the queue of writes holds.
    pub queue_records: usize,
}

impl fmt::Display for DiskInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pick = |first: bool, yes, no| if first { yes } else { no };
        write!(
            f,
            "{} {}, {} bytes: records of {} bytes ({} layers, {:.1} % padding, blocks of {}), {}, {}",
            pick(self.file.keep, "kept rows in", "private rows in"),
            self.file.path.display(),
            self.file_bytes,
            self.record_bytes,
            self.record_layers,
            100.0 * self.padding,
            self.block,
            pick(self.file.buffered, "buffered", "O_DIRECT"),
            pick(self.io_uring, "io_uring", "preadv"),
        )
    }
}

/// What a store has read and written since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountsOf<T> {
    /// Operations that read records.
    pub reads: T,
    /// Bytes that these read.
    pub read_bytes: T,
    /// Records that were read by these; neighbours share an operation.
    pub records_read: T,
    /// Operations that wrote.
    pub writes: T,
    /// Bytes that these wrote.
    pub written_bytes: T,
    /// Rows of a layer that were given to the queue of writes.
    pub rows_appended: T,
}

/// What a store had read and written when it was asked.
pub type DiskStats = CountsOf<u64>;

/// The counters of a store.
pub(super) type DiskCounters = CountsOf<AtomicU64>;

impl DiskCounters {
    pub(super) fn stats(&self) -> DiskStats {
        DiskStats {
            reads: self.reads.load(Relaxed),
            read_bytes: self.read_bytes.load(Relaxed),
            records_read: self.records_read.load(Relaxed),
            writes: self.writes.load(Relaxed),
            written_bytes: self.written_bytes.load(Relaxed),
            rows_appended: self.rows_appended.load(Relaxed),
        }
    }

    pub(super) fn add(counter: &AtomicU64, n: usize) {
        counter.fetch_add(n as u64, Relaxed);
    }
}
