//! The queue of writes: rows are copied into it and written later, a record at a time.

use std::io;
use std::sync::Arc;

use rustix::io::Errno;

use super::entries::{EntryState, QueueEntries, QueueEntry};
use super::flight::Flight;
use super::info::DiskCounters;
use super::io::{Direction, Queue};
use super::records::Records;
use crate::{Error, Result};

/// The fewest and the most records of a queue.
const MIN_RECORDS: usize = 8;
const MAX_RECORDS: usize = 1024;
/// The most records with missing layers that are written together.
const PARTIAL: usize = 16;

/// The queue of writes of a store. It has one lock, in [`Store`](super::Store).
pub(super) struct WriteQueue {
    records: Arc<Records>,
    pub entries: QueueEntries,
    flight: Flight,
    /// Whether `fdatasync` has failed.
    broken: bool,
    /// Whether entries may be in a state of reading although no call waits for them.
    reads_left: bool,
}

/// Returns the records that a queue of so many bytes holds, and the spare ones.
pub(super) fn capacity(records_bytes: usize, layers: usize, queue_bytes: usize) -> (usize, usize) {
    let records = (queue_bytes / records_bytes).clamp(MIN_RECORDS, MAX_RECORDS);
    // A record of one layer never lacks one.
    (records, if layers > 1 { PARTIAL } else { 0 })
}

impl WriteQueue {
    pub fn new(records: &Arc<Records>, queue: Box<dyn Queue>, queue_bytes: usize) -> Result<Self> {
        let layout = &records.layout;
        let (count, spare) = capacity(layout.max_record_bytes(), layout.layers(), queue_bytes);
        Ok(Self {
            records: Arc::clone(records),
            entries: QueueEntries::new(records, count, spare)?,
            flight: Flight::new(queue, records.unit, count)?,
            broken: false,
            reads_left: false,
        })
    }

    /// Puts a row into the queue. Its record is written when it is whole.
    pub fn append(&mut self, layer: usize, row: usize, parts: &[&[u8]]) -> Result<()> {
        self.collect()?;
        let records = Arc::clone(&self.records);
        let layout = &records.layout;
        let (indexer, place) = (layout.indexer_of(layer), layout.place(layer));
        let record = layout.record_number(indexer, row);
        let mut at = self.entries.find(record);
        if at.is_some_and(|at| self.entries.all[at].state != EntryState::Filling) {
            // Its write must end before the record can change.
            self.wait_until(|entries| entries.find(record).is_none())?;
            at = None;
        }
        let at = loop {
            match at.or_else(|| self.entries.take(indexer, row)) {
                Some(at) => break at,
                None => self.make_room()?,
            }
        };
        records.put(self.entries.bytes_mut(at), layer, row, parts);
        self.entries.note(at, place);
        records.queued.set(record);
        records.present.set(layout.row_number(indexer, row, place));
        DiskCounters::add(&records.counters.rows_appended, 1);
        if self.entries.is_whole(at) {
            self.send(&[at])?;
            self.poll()?;
        }
        Ok(())
    }

    /// Copies the row of a layer, unless it is not in the queue or was refused. Returns whether it was copied.
    pub fn copy_row(&self, layer: usize, row: usize, into: &mut [u8]) -> bool {
        let layout = &self.records.layout;
        let entry = self.entries.find(layout.record_number(layout.indexer_of(layer), row));
        let entry = entry.filter(|&at| self.entries.has(at, layout.place(layer)));
        let Some(at) = entry.filter(|_| self.records.is_present(layer, row)) else { return false };
        into.copy_from_slice(&self.entries.bytes(at)[layout.row_range(layer)]);
        true
    }

    /// Returns a record if it is in the queue. If rows of its layers are missing there, it is written
    /// first, so that it can be read from the file.
    pub fn record(&mut self, indexer: usize, row: usize) -> Result<Option<&[u8]>> {
        self.end_reads()?;
        let record = self.records.layout.record_number(indexer, row);
        let Some(at) = self.entries.find(record) else { return Ok(None) };
        if self.entries.is_whole(at) {
            return Ok(Some(self.entries.bytes(at)));
        }
        if self.entries.all[at].state == EntryState::Filling {
            self.send(&[at])?;
        }
        self.wait_until(|entries| entries.find(record).is_none())?;
        Ok(None)
    }

    /// Writes everything and makes it durable.
    pub fn flush(&mut self) -> Result<()> {
        self.collect()?;
        loop {
            let filling =
                self.entries.oldest::<PARTIAL>(|entry| entry.state == EntryState::Filling);
            if filling.is_empty() {
                break;
            }
            self.send(&filling)?;
            self.collect()?;
        }
        self.wait_until(|_| false)?;
        self.records.check_len()?;
        if self.broken {
            let what = format!("{}, which failed at an earlier flush", self.records.path.display());
            let remedy = "drop the pool: the rows of flushes before that are durable, and later ones may be lost";
            return Err(Error::os("fdatasync", what, Errno::IO, remedy));
        }
        let synced = self.records.sync();
        // The kernel may have dropped bytes that it will not report again.
        self.broken = synced.is_err();
        synced
    }

    /// Waits for the writes that are under way.
    pub fn settle(&mut self) {
        self.flight.abandon();
        self.flight.settle(self.records.timeout);
    }

    /// Frees an entry: by waiting for a write, or by starting one.
    fn make_room(&mut self) -> Result<()> {
        if !self.flight.is_busy() {
            let oldest = self.entries.oldest::<PARTIAL>(|entry| entry.state == EntryState::Filling);
            self.send(&oldest)?;
        }
        self.wait_until(|entries| !entries.free.is_empty())
    }

    /// Starts the writes of entries that are filling, at most [`PARTIAL`] unless they are whole. Where rows
    /// of other layers share a block, their bytes are read first.
    fn send(&mut self, which: &[usize]) -> Result<()> {
        let mut spare = 0;
        for &at in which {
            let range = self.records.blocks_of(self.entries.all[at].indexer, self.entries.span(at));
            let missing = self.entries.missing(at, &range).next().is_some();
            self.entries.all[at].range = range;
            if missing {
                self.entries.all[at].state = EntryState::Reading(spare);
                self.start(at, Direction::Read, self.entries.all.len() + spare);
                spare += 1;
            }
        }
        if spare > 0 {
            self.reads_left = true;
            self.wait_for(|entries| !entries.is_reading())?;
            if self.entries.failure.is_some() {
                return self.collect();
            }
        }
        for &at in which {
            if let EntryState::Read(spare) = self.entries.all[at].state {
                self.entries.merge(at, spare);
            }
            self.write(at);
        }
        self.reads_left = false;
        Ok(())
    }

    /// Waits for reads that an error of an earlier [`Self::send`] has left.
    fn end_reads(&mut self) -> Result<()> {
        if self.reads_left {
            self.wait_for(|entries| !entries.is_reading())?;
            let all = self.entries.all.iter_mut();
            let read = all.filter(|entry| matches!(entry.state, EntryState::Read(_)));
            // An entry that was read waits for its next turn, which reads it again.
            read.for_each(|entry| entry.state = EntryState::Filling);
            self.reads_left = false;
        }
        Ok(())
    }

    fn write(&mut self, at: usize) {
        self.entries.all[at].state = EntryState::Writing;
        self.start(at, Direction::Write, at);
    }

    /// Starts an operation on the range of an entry, whose bytes are in this place of the memory: that of
    /// an entry that is in the state of writing, or a spare one that has no other entry.
    fn start(&mut self, at: usize, direction: Direction, place: usize) {
        let QueueEntry { indexer, row, ref range, .. } = self.entries.all[at];
        let offset = self.records.layout.record_offset(indexer, row) + range.start as u64;
        self.flight.pieces[at] = self.entries.piece(place, range.clone());
        // SAFETY: nobody else uses these bytes until the operation has ended: they are a spare record of
        // this entry, or nobody writes them in this state. The mapping lives until no operation is under
        // way or is left to the kernel.
        unsafe { self.flight.start(at as u32, direction, offset, at..at + 1) };
    }

    /// Starts what was accepted, notes what has ended, and reports the first failure.
    fn collect(&mut self) -> Result<()> {
        self.end_reads()?;
        self.poll()?;
        self.report()
    }

    /// Waits until `done`, or nothing is under way, or a write fails.
    fn wait_until(&mut self, done: impl Fn(&QueueEntries) -> bool) -> Result<()> {
        self.wait_for(|entries| done(entries) || entries.failure.is_some())?;
        self.report()
    }

    /// Waits until `done`, or nothing is under way.
    fn wait_for(&mut self, done: impl Fn(&QueueEntries) -> bool) -> Result<()> {
        while !done(&self.entries) {
            let next = self.flight.next(self.records.timeout);
            let Some((id, result)) = next.map_err(|error| self.stopped(error))? else { break };
            self.entries.ended(id as usize, result);
        }
        Ok(())
    }

    /// Starts what was accepted, and notes what has ended.
    fn poll(&mut self) -> Result<()> {
        while let Some((id, result)) = self.flight.poll().map_err(|error| self.stopped(error))? {
            self.entries.ended(id as usize, result);
        }
        Ok(())
    }

    fn stopped(&self, error: io::Error) -> Error {
        self.records.stopped(error, self.flight.under_way())
    }

    /// Returns the first failure as an error, and tries the writes that have failed again.
    fn report(&mut self) -> Result<()> {
        let Some(failure) = self.entries.failure.take() else { return Ok(()) };
        for at in 0..self.entries.all.len() {
            if self.entries.all[at].state == EntryState::Failed {
                self.write(at);
            }
        }
        Err(self.records.failed(&failure))
    }
}
