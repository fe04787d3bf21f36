//! The records of an open file, and what this process knows of them.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::io::Errno;
use xxhash_rust::xxh3;

use super::bits::Bits;
use super::config::PoolFile;
use super::flight::{DEPTH, Flight, Rest, Unmoved};
use super::info::DiskCounters;
use super::io::{Direction, Disk, Piece};
use super::record_layout::{CHECKSUM, Layout};
use crate::rows::Row;
use crate::system::fork::Birth;
use crate::system::reserve;
use crate::{Error, Result, ensure};

/// The entries of [`Stamps`], a power of two. A record that shares an entry with one that was written is read a second time.
const STAMPS: usize = 1 << 15;

/// When records were written, as far as a reader that keeps a copy of one must know: the number of the last write of each,
/// with one entry for several records. A write becomes visible to reads before it gets its number.
pub(crate) struct Stamps {
    writes: AtomicU64,
    entries: Box<[AtomicU64]>,
}

impl Stamps {
    /// The bytes of the entries.
    pub const BYTES: usize = STAMPS * size_of::<u64>();

    pub fn new() -> Result<Self> {
        let entries = reserve::defaults("stamps of writes", STAMPS)?.into();
        Ok(Self { writes: AtomicU64::new(0), entries })
    }

    fn entry(&self, record: usize) -> &AtomicU64 {
        let hash = (record as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        &self.entries[hash as usize % STAMPS]
    }

    /// Notes a write of a record that reads see from now on.
    pub fn written(&self, record: usize) {
        let number = self.writes.fetch_add(1, Ordering::AcqRel) + 1;
        self.entry(record).fetch_max(number, Ordering::AcqRel);
    }

    /// Returns the number of writes so far. What is read after the call contains them.
    pub fn now(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    /// Returns whether a record may have been written after `now` had returned this number.
    pub fn written_since(&self, record: usize, stamp: u64) -> bool {
        self.entry(record).load(Ordering::Acquire) > stamp
    }
}

/// What the parts of a store share.
pub(super) struct Records {
    pub layout: Layout,
    pub disk: Arc<dyn Disk>,
    /// The configuration, with the sessions that the file has.
    pub file: PoolFile,
    pub memory_alignment: usize,
    /// The random number of the file.
    pub number: u64,
    /// The rows that may be in the file or in the queue of writes, by their number: of a new file those that were
    /// written, of one that was opened all; without those whose last write was refused.
    pub present: Bits,
    /// The records that are in the queue of writes, by their number.
    pub queued: Bits,
    pub counters: DiskCounters,
    pub birth: Birth,
}

impl Records {
    /// Copies a row of a layer to its place in a record in memory, with its checksum.
    pub fn put(&self, record: &mut [u8], &Row { layer, row, parts }: &Row<'_>) {
        let layout = &self.layout;
        let range = layout.row_range(layer);
        let mut rest = &mut record[range.clone()];
        for part in parts {
            rest.split_off_mut(..part.len()).unwrap_or_default().copy_from_slice(part);
        }
        self.seal(layout.number_of(layer, row), &mut record[range.start..range.end + CHECKSUM]);
    }

    /// Returns the row of a layer in a record in memory if it is whole. Only this decides that a row, and not
    /// the device, has failed.
    pub fn whole_row<'a>(&self, record: &'a [u8], layer: usize, row: usize) -> Option<&'a [u8]> {
        let range = self.layout.row_range(layer);
        self.sealed(self.layout.number_of(layer, row), &record[range.start..range.end + CHECKSUM])
    }

    /// Writes the checksum behind the bytes that have this number, of a row or of the data of a token.
    pub fn seal(&self, number: usize, bytes: &mut [u8]) {
        if let Some((row, sum)) = bytes.split_last_chunk_mut() {
            *sum = self.checksum(number, row);
        }
    }

    /// Returns the bytes before a checksum if they may be whole and it is right.
    pub fn sealed<'a>(&self, number: usize, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (row, sum) = bytes.split_last_chunk()?;
        (self.present.get(number) && *sum == self.checksum(number, row)).then_some(row)
    }

    /// Returns the checksum of the bytes with this number. A row at another place, or one that an older file left on
    /// the same blocks, has another checksum. It is never 0, so that a hole of the file, in which row and checksum are
    /// zeros, is no whole row.
    fn checksum(&self, number: usize, row: &[u8]) -> [u8; CHECKSUM] {
        let place = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (xxh3::xxh3_64(row) ^ self.number.wrapping_add(place)).max(1).to_le_bytes()
    }

    /// Returns whether the row of a layer may be whole.
    pub fn is_present(&self, layer: usize, row: usize) -> bool {
        self.present.get(self.layout.number_of(layer, row))
    }

    /// Returns the error of a row that is not whole.
    pub fn not_whole(&self, layer: usize, row: usize) -> Error {
        let record = self.layout.record_offset(self.layout.indexer_of(layer), row);
        let at = record + self.layout.row_range(layer).start as u64;
        let place = format!(" at byte {at} of {}", self.file.path.display());
        let remedy = "write the whole row before it is selected";
        Error::LostRows { requests: 0, layer, row, place, remedy }
    }

    /// Returns the error of a token whose data is not whole.
    pub fn no_data(&self, row: usize) -> Error {
        let place = format!(" in the data of its token, in {}", self.file.path.display());
        let remedy = "write the data of the token before it is read or committed";
        Error::LostRows { requests: 0, layer: 0, row, place, remedy }
    }

    /// Reads or writes adjacent bytes of the file in this thread.
    ///
    /// # Safety
    /// `at` is valid for `len` bytes of this direction, and no other code uses them during the call, except
    /// that others may read what is written.
    pub unsafe fn run(
        &self,
        direction: Direction,
        offset: u64,
        at: *mut u8,
        len: usize,
    ) -> Result<()> {
        let mut pieces = [Piece { at, len }];
        let mut rest = Rest { direction, offset, bytes: len, pieces: 0..1 };
        loop {
            // SAFETY: what is left is a part of the `len` bytes at `at`, which are valid and which no other code
            // uses (`# Safety`).
            let result = unsafe { self.disk.run(&rest.operation(&pieces)) };
            if let Some(outcome) = rest.take(result, self.unit(), &mut pieces) {
                return outcome.map_err(|unmoved| self.failed(unmoved));
            }
        }
    }

    /// Returns the multiple of bytes at which an operation that was cut short goes on.
    fn unit(&self) -> usize {
        if self.file.buffered { 1 } else { self.layout.block }
    }

    /// Returns a flight of up to `operations` operations, with a queue of io_uring if it is to have one and the system
    /// has it.
    pub fn flight(&self, operations: usize, queue: bool) -> Result<Flight> {
        /// The first refusal is told, and each later store is like it.
        static TOLD: AtomicBool = AtomicBool::new(false);
        let queue = (queue && self.file.io_uring).then(|| self.disk.queue(DEPTH));
        if let Some(Err(error)) = &queue
            && !TOLD.swap(true, Ordering::Relaxed)
        {
            log::warn!(
                "the system refuses io_uring ({error}), so rows of pool files are read by preadv"
            );
        }
        Flight::new(&self.disk, queue.and_then(io::Result::ok), self.unit(), operations)
    }

    /// Reads adjacent bytes of the file in this thread.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        // SAFETY: the reference is exclusive.
        unsafe { self.run(Direction::Read, offset, into.as_mut_ptr(), into.len()) }
    }

    /// Writes adjacent bytes of the file in this thread.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        DiskCounters::add(&self.counters.writes, 1);
        DiskCounters::add(&self.counters.written_bytes, bytes.len());
        // SAFETY: a write reads the bytes only.
        unsafe { self.run(Direction::Write, offset, bytes.as_ptr().cast_mut(), bytes.len()) }
    }

    /// Counts an operation that has read so many records and bytes.
    pub fn count_read(&self, bytes: usize, records: usize) {
        let DiskCounters { reads, read_bytes, records_read, .. } = &self.counters;
        DiskCounters::add(reads, 1);
        DiskCounters::add(read_bytes, bytes);
        DiskCounters::add(records_read, records);
    }

    /// Makes all completed writes durable.
    pub fn sync(&self) -> Result<()> {
        self.disk.sync().map_err(|error| {
            let remedy = "drop the pool: the rows of earlier flushes are durable, and later ones may be lost";
            Error::os("fdatasync", self.file.path.display().to_string(), error, remedy)
        })
    }

    /// Returns the error of a read or write that failed.
    pub fn failed(&self, Unmoved { direction, offset, error }: Unmoved) -> Error {
        let (call, remedy) = match (direction, error.kind()) {
            (Direction::Read, _) => {
                ("read", "repeat the call, or drop the plan and check the device")
            }
            (Direction::Write, io::ErrorKind::StorageFull | io::ErrorKind::WriteZero) => {
                ("write", "free space and repeat the call; the row is kept in memory until then")
            }
            (Direction::Write, _) => {
                ("write", "repeat the call; the row is kept in memory until it is written")
            }
        };
        let mut what = format!("byte {offset} of {}", self.file.path.display());
        if let Some((indexer, row)) = self.layout.record_at(offset) {
            what = format!("{} at {what}", self.name(indexer, row));
        }
        Error::os(call, what, error, remedy)
    }

    /// Returns the words for a record.
    fn name(&self, indexer: usize, row: usize) -> String {
        let of_indexer = |&layer: &usize| self.layout.indexer_of(layer) == indexer;
        let mut layers = (0..self.layout.layers()).filter(of_indexer);
        let first = layers.next().unwrap_or(0);
        match layers.next_back() {
            None => format!("row {row} of layer {first}"),
            Some(last) => format!("row {row} of layers {first} to {last}"),
        }
    }

    /// Returns the error of a queue of operations that failed as a whole, or in which none completed in time.
    pub fn stopped(&self, error: io::Error, under_way: usize) -> Error {
        let what = format!("{under_way} operations on {}", self.file.path.display());
        if Errno::from_io_error(&error) == Some(Errno::TIMEDOUT) {
            let what = format!("{what}, of which none completed in {:?}", self.file.timeout);
            return Error::os("wait", what, error, "check the device, or set a longer timeout");
        }
        Error::os("io_uring_enter", what, error, "drop the pool and make or open it again")
    }

    /// Checks that nobody made the file shorter, and so cut off rows of earlier flushes.
    pub fn check_len(&self) -> Result<()> {
        let (has, needed) = (length(&*self.disk, &self.file.path)?, self.layout.end());
        if has >= needed || !self.file.keep {
            return Ok(());
        }
        let source = io::Error::other(format!("it has {has} bytes, and its rows need {needed}"));
        let remedy = "the file became shorter, so make the pool anew";
        Err(Error::os("fdatasync", self.file.path.display().to_string(), source, remedy))
    }

    /// Returns the bytes of a record's blocks that hold the rows at these places.
    pub fn blocks_of(&self, indexer: usize, places: Range<usize>) -> Range<usize> {
        let (stride, block) = (self.layout.row_stride(), self.layout.block);
        let (start, end) = (places.start * stride, places.end * stride);
        let end = if places.end == self.layout.group_layers(indexer) {
            self.layout.record_bytes(indexer)
        } else {
            end.next_multiple_of(block)
        };
        start - start % block..end
    }
}

/// Checks that the file or the device has `needed` bytes.
pub(super) fn check_len(disk: &dyn Disk, path: &Path, needed: u64) -> Result<()> {
    let has = length(disk, path)?;
    ensure!(has >= needed, "pool file" is format!("{} of {has} bytes", path.display()), but
        "its rows need {needed} bytes";
        "name a larger device; a file that became shorter has lost rows, so make the pool anew");
    Ok(())
}

fn length(disk: &dyn Disk, path: &Path) -> Result<u64> {
    let refused = |e| Error::os("fstat", path.display().to_string(), e, "make the pool anew");
    disk.length().map_err(refused)
}
