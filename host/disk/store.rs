//! A store of rows in a file.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use spin::Mutex;

use super::info::{DiskInfo, DiskStats};
use super::io::{Direction, Disk};
use super::record_layout::Layout;
use super::records::{Records, Stamps};
use super::session::{Kept, Session, SessionTable};
use super::write_queue::WriteQueue;
use crate::rows::{self, Row, RowFormat};
use crate::{Result, ensure, invalid};

/// The most rows that are put into the queue of writes before readers get a turn.
const LOCKED_ROWS: usize = 1024;

/// Puts another [`Disk`] between a store and its file, for tests.
pub type Wrap<'a> = &'a dyn Fn(Arc<dyn Disk>) -> Arc<dyn Disk>;

/// The rows of all layers in one file. Its methods may be called by several threads at once, as those of a
/// [pool](crate::pool): a row is not read while it is written.
pub struct Store {
    pub(super) records: Arc<Records>,
    pub(super) info: DiskInfo,
    pub(super) format: RowFormat,
    pub(super) queue: Mutex<WriteQueue>,
    pub(crate) stamps: Stamps,
    pub(super) sessions: std::sync::Mutex<SessionTable>,
    /// The rows that sessions keep.
    pub(crate) kept: Kept,
    /// Where the data of tokens begins.
    pub(super) tokens: u64,
}

impl Store {
    /// Returns where rows are in the file and in their records.
    pub fn layout(&self) -> &Layout {
        &self.records.layout
    }

    /// Returns what the file is.
    pub fn info(&self) -> DiskInfo {
        self.info.clone()
    }

    /// Returns what was read and written.
    pub fn stats(&self) -> DiskStats {
        self.records.counters.stats()
    }

    /// Returns the longest time without a completed read or write after which a call returns an error.
    pub fn timeout(&self) -> Duration {
        self.records.file.timeout
    }

    /// Puts whole rows, each of one layer, into the queue of writes and returns. A record is written when the rows
    /// of all layers of its indexer are there, together with its neighbours, or when the queue needs the room. It
    /// allocates nothing unless it returns an error.
    ///
    /// # Errors
    /// If a row does not exist or is kept by a session, the length is wrong, no room comes in time, or an earlier write failed: that
    /// error names the row of the write, which stays in the queue and is tried again. The row that has the error
    /// and those behind it are errors when they are read, until they are appended again.
    pub fn append<'a>(&self, rows: impl Iterator<Item = Row<'a>>) -> Result<()> {
        self.records.birth.check("pool")?;
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let done = self.lock().and_then(|mut queue| {
                queue.collect()?;
                let some = rows.by_ref().take(LOCKED_ROWS);
                some.into_iter().try_for_each(|row| self.put(&mut queue, &row))
            });
            if done.is_err() {
                rows.for_each(|row| self.forget(&row));
                return done;
            }
        }
        Ok(())
    }

    /// Puts a row into the queue of writes, and then tells readers that keep copies of its record.
    fn put(&self, queue: &mut WriteQueue, row: &Row<'_>) -> Result<()> {
        let layout = self.layout();
        layout.check_row(row.layer, row.row)?;
        self.kept.check(row.row)?;
        self.format.expect_row(row.parts.iter().map(|part| part.len()).sum())?;
        let put = queue.append(row);
        if put.is_err() {
            self.forget(row);
        }
        self.stamps.written(layout.record_number(layout.indexer_of(row.layer), row.row));
        put
    }

    /// Makes reads of a row, if it exists, an error until it is written again, because its new bytes may not have
    /// been taken.
    fn forget(&self, row: &Row<'_>) {
        if self.layout().check_row(row.layer, row.row).is_ok() && self.kept.check(row.row).is_ok() {
            self.records.present.clear(self.layout().number_of(row.layer, row.row));
        }
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
        let layout = self.layout();
        // SAFETY: `to` is valid for writes of a record, and no other code uses it (`# Safety`).
        if unsafe { self.queued_record(indexer, row, to) }? {
            return Ok(());
        }
        let (offset, len) = (layout.record_offset(indexer, row), layout.record_bytes(indexer));
        self.records.count_read(len, 1);
        // SAFETY: `to` is valid for writes of a record, which is `len` bytes, and no other code uses it
        // (`# Safety`).
        unsafe { self.records.run(Direction::Read, offset, to, len) }
    }

    /// Returns the row of a layer in a record that was read, if it is whole. It allocates nothing unless it
    /// returns an error.
    ///
    /// # Errors
    /// If the row is not whole; the error names layer, row and offset.
    pub fn row_in<'a>(&self, record: &'a [u8], layer: usize, row: usize) -> Result<&'a [u8]> {
        let layout = self.layout();
        layout.check_row(layer, row)?;
        let indexer = layout.indexer_of(layer);
        let needed = layout.record_bytes(indexer);
        ensure!(record.len() >= needed, "record buffer" is format!("{} bytes", record.len()), but
            "a record of indexer {indexer} has {needed}"; "pass memory for a whole record");
        let whole = self.records.whole_row(record, layer, row);
        whole.ok_or_else(|| self.records.not_whole(layer, row))
    }

    /// Returns whether the row of a layer in a record that was read is whole. Both exist, and `record` is as long
    /// as a record. It allocates nothing.
    pub(crate) fn is_whole(&self, record: &[u8], layer: usize, row: usize) -> bool {
        self.records.whole_row(record, layer, row).is_some()
    }

    /// Writes everything that is in the queue, and makes it durable (`fdatasync`, which takes as long as the
    /// device needs).
    ///
    /// # Errors
    /// If a write fails: the rows stay readable, and a later call tries again. If `fdatasync` fails: the kernel may
    /// have dropped bytes that it will not report again, so that all later calls fail.
    pub fn flush(&self) -> Result<()> {
        self.records.birth.check("pool")?;
        self.lock()?.flush()
    }

    /// Returns what a session has committed; a session that never was has no tokens.
    ///
    /// # Errors
    /// If there is no such session, or it is damaged in both copies.
    pub fn session(&self, session: usize) -> Result<Session> {
        let table = self.table(session)?;
        let Some(Session { length, blocks, bytes }) = table.get(session) else {
            return Err(invalid!("session" is session, but "it is damaged in the file";
                "commit it anew"));
        };
        Session::new(*length, blocks, bytes)
    }

    /// Makes all rows and data of tokens durable, and then what a session has: `length` tokens, of which token t is
    /// row t % n of block `blocks[t / n]` for blocks of n rows, and `bytes`. After an error that tells of no system
    /// call nothing has changed. 0 tokens without blocks remove it.
    ///
    /// # Errors
    /// If there is no such session, a block is none or is listed twice, the bytes are too many, a row or the data
    /// of a new token is known to be missing, or a system call fails.
    pub fn commit_session(
        &self,
        session: usize,
        length: usize,
        blocks: &[i32],
        bytes: &[u8],
    ) -> Result<()> {
        let mut table = self.table(session)?;
        let next = Session::new(length, blocks, bytes)?;
        let adds = table.check(&self.records, session, &next)?;
        self.flush()?;
        table.commit(&self.records, &self.kept, (session, next), adds)
    }

    fn table(&self, session: usize) -> Result<MutexGuard<'_, SessionTable>> {
        self.records.birth.check("pool")?;
        let table = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        rows::index("session", session, table.saved.len())?;
        Ok(table)
    }

    /// Checks that this process has the pool and that there is such a record, copies it if it is in the queue of writes,
    /// and returns whether it was there.
    ///
    /// # Safety
    /// As for [`Self::read_record`].
    pub(super) unsafe fn queued_record(
        &self,
        indexer: usize,
        row: usize,
        to: *mut u8,
    ) -> Result<bool> {
        self.records.birth.check("pool")?;
        rows::index("indexer", indexer, self.layout().indexers())?;
        rows::index("row", row, self.layout().rows())?;
        if !self.records.queued.get(self.layout().record_number(indexer, row)) {
            return Ok(false);
        }
        let mut queue = self.lock()?;
        let Some(record) = queue.record(indexer, row)? else { return Ok(false) };
        // SAFETY: `to` is valid for writes of a record (`# Safety`), and it is not in the queue, whose
        // memory is its own.
        unsafe { to.copy_from_nonoverlapping(record.as_ptr(), record.len()) };
        Ok(true)
    }

    /// Takes the lock of the queue of writes. Its owners hold it while they copy a row, or while they wait
    /// for the device, which they do for a limited time.
    pub(super) fn lock(&self) -> Result<spin::MutexGuard<'_, WriteQueue>> {
        const POLLS: u32 = 100;
        let start = Instant::now();
        for polls in 0u32.. {
            if let Some(queue) = self.queue.try_lock() {
                return Ok(queue);
            }
            match polls {
                ..POLLS => core::hint::spin_loop(),
                _ if start.elapsed() > 2 * self.records.file.timeout => break,
                _ => thread::sleep(Duration::from_micros(20)),
            }
        }
        Err(self.records.stopped(Errno::TIMEDOUT.into(), 1))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // In a forked child the operations and the lock are those of the parent.
        if self.records.file.keep && !self.records.birth.is_past() {
            let flight = &mut self.queue.get_mut().flight;
            flight.abandon();
            flight.settle(self.records.file.timeout);
            // The kernel frees a ring, which refers to the file, some time after it is closed.
            self.records.disk.unlock();
        }
    }
}
