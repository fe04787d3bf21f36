//! Reads of many records at once.

use std::sync::Arc;
use std::time::Duration;

use super::store::Store;
use crate::Result;

/// A list of records to read, and the queue that reads them. It belongs to one thread at a time, and what it
/// needs is allocated when it is made.
pub struct Reader {
    store: Arc<Store>,
}

impl Reader {
    /// Returns a reader for lists of up to `most` records.
    ///
    /// # Errors
    /// If memory is refused. A kernel that refuses io_uring is no error: the reader then reads in the calling
    /// thread, as [`Store::read_record`] does.
    pub fn new(store: &Arc<Store>, most: usize) -> Result<Self> {
        todo!("{most} {}", store.layout().rows())
    }

    /// Returns whether reads use io_uring. Without it a caller with several threads does better with
    /// [`Store::read_record`] in each of them.
    pub fn io_uring(&self) -> bool {
        todo!()
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Puts a record on the list and returns its number in it, counted from 0 since the last
    /// [`Self::run`]. Records that are neighbours in the file share a read.
    ///
    /// # Errors
    /// If there is no such record, the list is full, the address is not aligned, or reads of an earlier list
    /// are still under way ([`Self::settle`]).
    ///
    /// # Safety
    /// `to` is valid for writes of [`Layout::record_bytes`](super::Layout::record_bytes), and no other code
    /// uses these bytes until [`Self::run`] has called `done` for this number or [`Self::under_way`] is 0.
    pub unsafe fn push(&mut self, indexer: usize, row: usize, to: *mut u8) -> Result<usize> {
        todo!("{indexer} {row} {to:p}")
    }

    /// Reads the records of the list, all in flight, and empties the list. It calls `done` with the number of
    /// each record that is in memory, while others are still read. Rows whose write is under way come from the
    /// queue of writes. Rows are not checked: [`Store::row_in`] does that. It allocates nothing and takes no lock
    /// unless a record is in the queue of writes or it returns an error.
    ///
    /// # Errors
    /// If a record cannot be read: the error names its row, its offset and errno. Other reads of the list have
    /// been awaited then, and `done` was called for those that succeeded. If none completes within the time
    /// limit, reads are still under way afterwards.
    pub fn run(&mut self, done: &mut dyn FnMut(usize)) -> Result<()> {
        todo!("{}", size_of_val(&done))
    }

    /// Returns the number of reads that may still write to their memory, which is not 0 only after an error of
    /// [`Self::run`] about the time limit.
    pub fn under_way(&self) -> usize {
        todo!()
    }

    /// Waits for reads that are still under way, and returns whether none is left.
    pub fn settle(&mut self, timeout: Duration) -> bool {
        todo!("{timeout:?}")
    }
}
