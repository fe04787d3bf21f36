//! The queue of writes: rows are copied into it and written later, a record at a time.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::commit::{self, Commits};
use super::entries::{Entries, State};
use super::flight::Flight;
use super::info::Counters;
use super::io::{Direction, Queue};
use super::records::Records;
use crate::Result;

/// The fewest and the most records of a queue.
const MIN_RECORDS: usize = 8;
const MAX_RECORDS: usize = 1024;
/// The most records with missing layers that are written together.
const PARTIAL: usize = 16;

/// The queue of writes of a store. It has one lock, in [`Store`](super::Store).
pub(super) struct WriteQueue {
    records: Arc<Records>,
    entries: Entries,
    flight: Flight,
    commits: Option<Commits>,
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
    pub fn new(
        records: &Arc<Records>,
        queue: Box<dyn Queue>,
        queue_bytes: usize,
        commits: Option<Commits>,
    ) -> Result<Self> {
        let layout = &records.layout;
        let (count, spare) = capacity(layout.max_record_bytes(), layout.layers(), queue_bytes);
        Ok(Self {
            records: Arc::clone(records),
            entries: Entries::new(records, count, spare)?,
            flight: Flight::new(queue, records.unit, count)?,
            commits,
            reads_left: false,
        })
    }

    pub fn memory_bytes(&self) -> usize {
        self.entries.memory_bytes()
    }

    pub fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// Puts a row into the queue. With `send` its record is written when it is whole.
    pub fn append(&mut self, layer: usize, row: usize, parts: &[&[u8]], send: bool) -> Result<()> {
        self.collect()?;
        let records = Arc::clone(&self.records);
        let layout = &records.layout;
        let (indexer, place) = (layout.indexer_of(layer), layout.place(layer));
        let record = layout.record_number(indexer, row);
        let at = match self.settled(record)? {
            Some(at) => at,
            None => loop {
                if let Some(at) = self.entries.take(&records, indexer, row) {
                    break at;
                }
                self.make_room()?;
            },
        };
        records.put(self.entries.bytes_mut(&records, at), layer, row, parts);
        self.entries.note(&records, at, place);
        records.queued.set(record);
        records.written.set(layout.row_number(indexer, row, place));
        Counters::add(&records.counters.rows_appended, 1);
        if send && self.entries.is_whole(&records, at) {
            self.send(&[at])?;
            self.advance(Duration::ZERO)?;
        }
        Ok(())
    }

    /// Returns the row of a layer if it is in the queue.
    pub fn row(&self, layer: usize, row: usize) -> Option<&[u8]> {
        let layout = &self.records.layout;
        let (indexer, place) = (layout.indexer_of(layer), layout.place(layer));
        let at = self.entries.find(&self.records, layout.record_number(indexer, row))?;
        let has = self.entries.has(&self.records, at, place);
        has.then(|| &self.entries.bytes(&self.records, at)[layout.row_range(layer)])
    }

    /// Returns a record if it is in the queue. If rows of its layers are missing there, it is written
    /// first, so that it can be read from the file.
    pub fn record(&mut self, indexer: usize, row: usize) -> Result<Option<&[u8]>> {
        self.end_reads()?;
        let records = Arc::clone(&self.records);
        let record = records.layout.record_number(indexer, row);
        let Some(at) = self.entries.find(&records, record) else { return Ok(None) };
        if self.entries.is_whole(&records, at) {
            return Ok(Some(self.entries.bytes(&records, at)));
        }
        if self.entries.get(at).state == State::Filling {
            self.send(&[at])?;
        }
        self.wait_until(|entries| entries.find(&records, record).is_none())?;
        Ok(None)
    }

    /// Writes everything, makes it durable, and commits which rows are valid.
    pub fn flush(&mut self) -> Result<()> {
        self.collect()?;
        loop {
            let filling = self.entries.oldest::<PARTIAL>(|entry| entry.state == State::Filling);
            if filling.is_empty() {
                break;
            }
            self.send(&filling)?;
            self.collect()?;
        }
        let records = Arc::clone(&self.records);
        self.wait_until(|_| false)?;
        records.check_len()?;
        match &mut self.commits {
            Some(commits) => {
                commits.put_all(&records.written);
                commits.commit(&records)
            }
            None => commit::sync(&records),
        }
    }

    /// Waits for the writes that are under way.
    pub fn settle(&mut self) {
        self.flight.abandon();
        self.flight.settle(self.records.timeout);
    }

    /// Returns the entry of a record after its write, if there was one, has ended; `None` if the record is
    /// not in the queue.
    fn settled(&mut self, record: usize) -> Result<Option<usize>> {
        let records = Arc::clone(&self.records);
        let Some(at) = self.entries.find(&records, record) else { return Ok(None) };
        if self.entries.get(at).state != State::Filling {
            self.wait_until(|entries| entries.find(&records, record).is_none())?;
            return Ok(None);
        }
        Ok(Some(at))
    }

    /// Frees an entry: by waiting for a write, or by starting one.
    fn make_room(&mut self) -> Result<()> {
        if !self.flight.is_busy() {
            let oldest = self.entries.oldest::<PARTIAL>(|entry| entry.state == State::Filling);
            self.send(&oldest)?;
        }
        self.wait_until(|entries| entries.has_free())
    }

    /// Starts the writes of entries that are filling, at most [`PARTIAL`] unless they are whole. Where rows
    /// of other layers share a block, their bytes are read first.
    fn send(&mut self, which: &[usize]) -> Result<()> {
        let records = Arc::clone(&self.records);
        records.check_len()?;
        self.take_out(which)?;
        let layout = &records.layout;
        let mut spare = 0;
        for &at in which {
            let (indexer, row) = (self.entries.get(at).indexer, self.entries.get(at).row);
            let range = records.blocks_of(indexer, self.entries.span(&records, at));
            let missing = self.entries.missing(&records, at, &range).next().is_some();
            self.entries.get_mut(at).range = range.clone();
            if missing {
                self.entries.get_mut(at).state = State::Reading(spare);
                self.flight.pieces[at] =
                    self.entries.piece(self.entries.len() + spare, range.clone());
                let offset = layout.record_offset(indexer, row) + range.start as u64;
                // SAFETY: the spare record belongs to this entry alone until the read has ended, and the
                // mapping lives until no operation is under way or is left to the kernel.
                unsafe { self.flight.start(at as u32, Direction::Read, offset, at..at + 1) };
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
            if let State::Read(spare) = self.entries.get(at).state {
                self.entries.merge(&records, at, spare);
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
            self.entries.forget_reads();
            self.reads_left = false;
        }
        Ok(())
    }

    fn write(&mut self, at: usize) {
        let entry = self.entries.get_mut(at);
        entry.state = State::Writing;
        let (range, indexer, row) = (entry.range.clone(), entry.indexer, entry.row);
        let offset = self.records.layout.record_offset(indexer, row) + range.start as u64;
        self.flight.pieces[at] = self.entries.piece(at, range);
        // SAFETY: nobody writes the memory of an entry in this state, and the mapping lives until no
        // operation is under way or is left to the kernel.
        unsafe { self.flight.start(at as u32, Direction::Write, offset, at..at + 1) };
    }

    /// Without checksums a row that is half written over cannot be told from a whole one. So rows that are
    /// written over are taken out of the commit of a kept file first.
    fn take_out(&mut self, which: &[usize]) -> Result<()> {
        let Some(commits) = &mut self.commits else { return Ok(()) };
        let (records, mut any) = (&self.records, false);
        if records.layout.checksums() {
            return Ok(());
        }
        for &at in which {
            let entry = self.entries.get(at);
            for place in self.entries.span(records, at) {
                let number = records.layout.row_number(entry.indexer, entry.row, place);
                if self.entries.has(records, at, place) && commits.has(number) {
                    commits.take_out(number);
                    any = true;
                }
            }
        }
        if any { commits.commit(records) } else { Ok(()) }
    }

    /// Starts what was accepted, notes what has ended, and reports the first failure.
    fn collect(&mut self) -> Result<()> {
        self.end_reads()?;
        if self.flight.is_busy() {
            self.advance(Duration::ZERO)?;
        }
        self.report()
    }

    /// Waits until `done`, or nothing is under way, or a write fails.
    fn wait_until(&mut self, done: impl Fn(&Entries) -> bool) -> Result<()> {
        self.wait_for(|entries| done(entries) || entries.failure.is_some())?;
        self.report()
    }

    /// Waits until `done`, or nothing is under way.
    fn wait_for(&mut self, done: impl Fn(&Entries) -> bool) -> Result<()> {
        let (timeout, mut last) = (self.records.timeout, Instant::now());
        while self.flight.is_busy() && !done(&self.entries) {
            let left = timeout.saturating_sub(last.elapsed());
            if left.is_zero() {
                let under_way = self.flight.under_way();
                return Err(self.records.stopped(Errno::TIMEDOUT.into(), under_way));
            }
            if self.advance(left)? {
                last = Instant::now();
            }
        }
        Ok(())
    }

    fn advance(&mut self, timeout: Duration) -> Result<bool> {
        let Self { records, entries, flight, .. } = self;
        let advanced: io::Result<bool> =
            flight.advance(timeout, &mut |id, result| entries.ended(records, id as usize, result));
        advanced.map_err(|error| self.records.stopped(error, self.flight.under_way()))
    }

    /// Returns the first failure as an error, and tries the writes that have failed again.
    fn report(&mut self) -> Result<()> {
        let Some(failure) = self.entries.failure.take() else { return Ok(()) };
        for at in 0..self.entries.len() {
            if self.entries.get(at).state == State::Failed {
                self.write(at);
            }
        }
        Err(self.records.failed(&failure))
    }
}
