//! A store of rows in a file.

use std::sync::Arc;
use std::time::Duration;

use super::config::PoolFile;
use super::info::{DiskInfo, DiskStats};
use super::io::Disk;
use super::layout::{Layout, Shape};
use super::stamps::Stamps;
use crate::Result;

/// Puts another [`Disk`] between a store and its file, for tests.
pub type Wrap<'a> = &'a dyn Fn(Arc<dyn Disk>) -> Arc<dyn Disk>;

/// The rows of all layers in one file. Its methods may be called by several threads at once, as those of a
/// [pool](crate::pool): a row is not read while it is written.
pub struct Store {
    layout: Layout,
    stamps: Stamps,
}

impl Store {
    /// Makes the file at its full size. An error leaves nothing behind.
    ///
    /// # Errors
    /// If the geometry is invalid, the path names something that exists and is no block device, the file
    /// system lacks space (the error has the missing bytes) or refuses O_DIRECT, or a system call fails.
    pub fn create(shape: &Shape, file: &PoolFile, wrap: Wrap<'_>) -> Result<Self> {
        todo!("{shape:?} {file:?} {}", size_of_val(&wrap))
    }

    /// Opens a file that was kept, and makes this process its only writer.
    ///
    /// # Errors
    /// If the file is no pool file of this version, is damaged or too short, has another geometry, another
    /// process or pool has it open, or a system call fails.
    pub fn open(shape: &Shape, file: &PoolFile, wrap: Wrap<'_>) -> Result<Self> {
        todo!("{shape:?} {file:?} {}", size_of_val(&wrap))
    }

    /// Returns the layout that [`Self::create`] gives a store of this shape.
    ///
    /// # Errors
    /// If the geometry is invalid, or the path cannot be looked at.
    pub(crate) fn plan_layout(shape: &Shape, file: &PoolFile) -> Result<Layout> {
        todo!("{shape:?} {file:?}")
    }

    /// Returns the bytes of memory that a store of this shape allocates: its queue of writes, and bits of
    /// its rows.
    ///
    /// # Errors
    /// If the geometry is invalid.
    pub fn plan_bytes(shape: &Shape, file: &PoolFile) -> Result<usize> {
        todo!("{shape:?} {file:?}")
    }

    /// Returns the shape that a kept file was made with.
    ///
    /// # Errors
    /// If the file cannot be read, or its header is not one of this version.
    pub fn stored_shape(file: &PoolFile) -> Result<Shape> {
        todo!("{file:?}")
    }

    /// Returns the number of writes so far, for [`Self::written_since`].
    pub(crate) fn stamp(&self) -> u64 {
        self.stamps.now()
    }

    /// Returns whether an existing record may have been written after [`Self::stamp`] had returned this
    /// number. If it returns false, what was read of it after that call is current.
    pub(crate) fn written_since(&self, indexer: usize, row: usize, stamp: u64) -> bool {
        self.stamps.written_since(self.layout.record_number(indexer, row), stamp)
    }

    /// Returns where rows are in the file and in their records.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns what the file is.
    pub fn info(&self) -> DiskInfo {
        todo!()
    }

    /// Returns what was read and written.
    pub fn stats(&self) -> DiskStats {
        todo!()
    }

    /// Returns the longest time without a completed read or write after which a call returns an error.
    pub fn timeout(&self) -> Duration {
        todo!()
    }

    /// Returns whether a row was written: by this process, or before a commit that the file was opened with.
    /// It is false for a row that does not exist.
    pub fn is_written(&self, layer: usize, row: usize) -> bool {
        todo!("{layer} {row}")
    }

    /// Puts a whole row of one layer into the queue of writes and returns; `parts` are its bytes, in any number of
    /// format. The record is written when the rows of all layers of its indexer are there, or when the queue
    /// needs the room. It allocates nothing unless it returns an error.
    ///
    /// # Errors
    /// If there is no such row, a length is wrong, no room comes in time, or an earlier write failed: the
    /// error names that row, which stays in the queue and is tried again, and this row was not taken.
    pub fn append(&self, layer: usize, row: usize, parts: &[&[u8]]) -> Result<()> {
        todo!("{layer} {row} {}", parts.len())
    }

    /// Replaces one segment of a row. The other segments keep their bytes, which are 0 if the row was never
    /// written. It may read the row from the file first.
    ///
    /// # Errors
    /// As for [`Self::append`] and [`Self::read_row`].
    pub fn write_segment(
        &self,
        layer: usize,
        segment: usize,
        row: usize,
        bytes: &[u8],
    ) -> Result<()> {
        todo!("{layer} {row} {segment} {}", bytes.len())
    }

    /// Reads one row of one layer in this thread, its segments back to back. Several threads may read at once.
    ///
    /// # Errors
    /// If there is no such row, it was never written, its checksum is wrong, or it cannot be read.
    pub fn read_row(&self, layer: usize, row: usize, into: &mut [u8]) -> Result<()> {
        todo!("{layer} {row} {}", into.len())
    }

    /// Reads one record in this thread: what [`Reader`](super::Reader) does for many, without io_uring. It
    /// allocates nothing unless it returns an error.
    ///
    /// # Errors
    /// If there is no such record, or it cannot be read. Rows are not checked: [`Self::row_in`] does that.
    ///
    /// # Safety
    /// `to` is a multiple of [`DiskInfo::memory_alignment`], valid for writes of
    /// [`Layout::record_bytes`], and no other code uses these bytes during the call.
    pub unsafe fn read_record(&self, indexer: usize, row: usize, to: *mut u8) -> Result<()> {
        todo!("{indexer} {row} {to:p}")
    }

    /// Returns the row of a layer in a record that was read, after the row's checksum was compared. It
    /// allocates nothing unless it returns an error.
    ///
    /// # Errors
    /// If the row was never written, or its checksum is wrong; the error names layer, row and offset.
    pub fn row_in<'a>(&self, record: &'a [u8], layer: usize, row: usize) -> Result<&'a [u8]> {
        todo!("{} {layer} {row}", record.len())
    }

    /// Writes everything that is in the queue, makes it durable (`fdatasync`), and in a kept file commits a
    /// record of which rows are valid.
    ///
    /// # Errors
    /// If a write or the commit fails. Then nothing new is committed, the rows stay readable, and a later call
    /// tries again; only after a failed `fdatasync` all later calls fail.
    pub fn flush(&self) -> Result<()> {
        todo!()
    }
}
