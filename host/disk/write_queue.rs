//! The queue of writes: rows are copied into it and written later. Records that are neighbours in the file are
//! written by one operation.

use std::cmp::Reverse;
use std::io;
use std::mem;
use std::sync::Arc;

use rustix::io::Errno;

use super::entries::{EntryState, NONE, QueueEntries, QueueEntry};
use super::file::MAX_PIECES;
use super::flight::{Ended, Flight, Unmoved};
use super::info::DiskCounters;
use super::io::Direction;
use super::records::Records;
use crate::rows::Row;
use crate::system::reserve;
use crate::{Error, Result};

/// The fewest records of a queue.
const MIN_RECORDS: usize = 8;
/// The most bytes of a queue, unless that is less than [`MIN_RECORDS`].
pub(super) const MAX_BYTES: usize = 256 << 20;
/// The records that a queue has room for by default, unless that is less than [`DEFAULT_BYTES`] or more than
/// [`MAX_BYTES`]: those of a chunk of a prompt, which is written layer by layer.
const DEFAULT_RECORDS: usize = 1024;
const DEFAULT_BYTES: usize = 8 << 20;
/// The most bytes of an operation, and of the whole records that wait for one, unless a record is longer.
const OPERATION_BYTES: usize = 2 << 20;
/// The most operations under way, and the most records whose missing rows are read at once.
const OPERATIONS: usize = 16;

/// The queue of writes of a store. It has one lock, in [`Store`](super::Store).
pub(super) struct WriteQueue {
    records: Arc<Records>,
    pub entries: QueueEntries,
    pub flight: Flight,
    /// The entries that are written next, without order.
    list: Vec<u32>,
    /// So many whole records are written together.
    batch: usize,
    /// The operations that are not under way. Operation n has the pieces from [`MAX_PIECES`] * n on, and a spare
    /// record if one can lack rows.
    idle: heapless::Vec<usize, OPERATIONS>,
    /// The last entry of each operation under way.
    last: [u32; OPERATIONS],
    /// The first failure that no call has reported.
    failure: Option<Unmoved>,
    /// Whether `fdatasync` has failed.
    broken: bool,
}

/// Returns the records that a queue of so many bytes holds, 0 for the default, and the spare ones.
fn capacity(record_bytes: usize, layers: usize, queue_bytes: usize) -> (usize, usize) {
    let queue_bytes = match queue_bytes {
        0 => (DEFAULT_RECORDS * record_bytes).clamp(DEFAULT_BYTES, MAX_BYTES),
        bytes => bytes,
    };
    // A record of one layer never lacks one.
    ((queue_bytes / record_bytes).max(MIN_RECORDS), if layers > 1 { OPERATIONS } else { 0 })
}

/// Returns the most bytes of memory that a queue of so many bytes takes.
pub(super) fn plan_bytes(record_bytes: usize, layers: usize, queue_bytes: usize) -> usize {
    let (count, spare) = capacity(record_bytes, layers, queue_bytes);
    // A smaller block leaves room for a part of a record more.
    (count + spare + 1) * record_bytes + (count + 1) * QueueEntries::bytes_beside(layers)
}

impl WriteQueue {
    pub fn new(records: &Arc<Records>) -> Result<Self> {
        let layout = &records.layout;
        let record = layout.max_record_bytes();
        let (count, spare) = capacity(record, layout.max_group_layers(), records.file.queue_bytes);
        Ok(Self {
            records: Arc::clone(records),
            entries: QueueEntries::new(records, count, spare)?,
            flight: records.flight(OPERATIONS * MAX_PIECES, true)?,
            list: reserve::with_capacity("queue of writes", count)?,
            batch: (OPERATION_BYTES / record).clamp(1, count / 2),
            idle: (0..OPERATIONS).collect(),
            last: [NONE; OPERATIONS],
            failure: None,
            broken: false,
        })
    }

    /// Puts a row into the queue. Its record is written with others when it is whole.
    pub fn append(&mut self, new: &Row<'_>) -> Result<()> {
        let &Row { layer, row, .. } = new;
        let records = Arc::clone(&self.records);
        let layout = &records.layout;
        let (indexer, place) = (layout.indexer_of(layer), layout.place(layer));
        let record = layout.record_number(indexer, row);
        let at = loop {
            match self.entries.find(record) {
                Some(at) if self.entries.is_open(at) => break at,
                // Its read or write must end before the record can change.
                Some(_) => self.wait()?,
                None => match self.entries.take(indexer, row) {
                    Some(at) => break at,
                    None => self.make_room()?,
                },
            }
        };
        records.put(self.entries.bytes_mut(at), new);
        self.entries.note(at, place);
        records.present.set(layout.row_number(indexer, row, place));
        DiskCounters::add(&records.counters.rows_appended, 1);
        if self.entries.is_whole(at) {
            // Half a batch is sent when no neighbour follows, so that a layer of a chunk is one operation. A record that
            // is on the list would be sent with it, and freed, and must not be listed again then.
            let last = self.list.last();
            let grows = last.is_some_and(|&last| self.entries.record(last) + 1 == record);
            if !grows && !self.entries.all[at].listed {
                self.send_if(self.batch / 2)?;
            }
            self.enlist(at);
            self.send_if(self.batch)?;
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
        let record = self.records.layout.record_number(indexer, row);
        while let Some(at) = self.entries.find(record) {
            if self.entries.is_whole(at) {
                return Ok(Some(self.entries.bytes(at)));
            }
            self.prepare(at)?;
            self.send();
            self.wait()?;
        }
        Ok(None)
    }

    /// Starts what was accepted, notes what has ended, and reports the first failure.
    pub fn collect(&mut self) -> Result<()> {
        self.poll()?;
        self.report()
    }

    /// Writes everything and makes it durable.
    pub fn flush(&mut self) -> Result<()> {
        self.collect()?;
        while self.entries.free.len() < self.entries.all.len() {
            self.prepare_all()?;
            while self.flight.is_busy() || !self.list.is_empty() {
                self.send();
                self.wait()?;
            }
        }
        self.records.check_len()?;
        if self.broken {
            let what =
                format!("{}, which failed at an earlier flush", self.records.file.path.display());
            let remedy = "drop the pool: the rows of flushes before that are durable, and later ones may be lost";
            return Err(Error::os("fdatasync", what, Errno::IO, remedy));
        }
        let synced = self.records.sync();
        // The kernel may have dropped bytes that it will not report again.
        self.broken = synced.is_err();
        synced
    }

    /// Frees an entry. If no record is whole, all are written as they are.
    fn make_room(&mut self) -> Result<()> {
        if self.list.len() >= self.batch / 2 || !self.flight.is_busy() {
            self.send();
        }
        if !self.flight.is_busy() {
            self.prepare_all()?;
            self.send();
        }
        while self.entries.free.is_empty() && self.flight.is_busy() {
            self.wait()?;
        }
        Ok(())
    }

    fn enlist(&mut self, at: usize) {
        if !mem::replace(&mut self.entries.all[at].listed, true) {
            self.list.push(at as u32);
        }
    }

    /// Puts all records on the list, and waits until the reads for that have ended.
    fn prepare_all(&mut self) -> Result<()> {
        (0..self.entries.all.len()).try_for_each(|at| self.prepare(at))?;
        while (0..self.entries.all.len())
            .any(|at| self.entries.all[at].state == EntryState::Reading)
        {
            self.wait()?;
        }
        Ok(())
    }

    /// Puts a record on the list, at once or, where rows of other layers share a block, when their bytes were read.
    fn prepare(&mut self, at: usize) -> Result<()> {
        if !self.entries.is_open(at) || self.entries.all[at].listed {
            return Ok(());
        }
        if !self.entries.set_range(at) {
            self.enlist(at);
            return Ok(());
        }
        let operation = loop {
            match self.idle.pop() {
                Some(operation) => break operation,
                None => self.wait()?,
            }
        };
        let spare = self.entries.all.len() + operation;
        let entry = &mut self.entries.all[at];
        (entry.state, entry.before) = (EntryState::Reading, NONE);
        let range = entry.range.clone();
        self.flight.operations.pieces[operation * MAX_PIECES] = self.entries.piece(spare, range);
        self.last[operation] = at as u32;
        self.start(operation, Direction::Read, at, 1);
        Ok(())
    }

    /// Starts the writes of the list if it is as long as this, and notes what has ended.
    fn send_if(&mut self, long: usize) -> Result<()> {
        if self.list.len() < long || self.idle.is_empty() {
            return Ok(());
        }
        self.send();
        self.poll()
    }

    /// Starts the writes of the list, as far as operations are idle.
    fn send(&mut self) {
        if self.idle.is_empty() || self.list.is_empty() {
            return;
        }
        let Self { entries, list, .. } = self;
        // A row that came later may be in other blocks.
        list.retain(|&at| {
            let lacks = entries.set_range(at as usize);
            entries.all[at as usize].listed = !lacks;
            !lacks
        });
        list.sort_unstable_by_key(|&at| Reverse(entries.offset(at as usize)));
        while let Some(&first) = self.list.last()
            && let Some(operation) = self.idle.pop()
        {
            let (mut last, mut pieces, mut bytes) = (NONE, 0, 0);
            let start = self.entries.offset(first as usize);
            while let Some(&number) = self.list.last() {
                let at = number as usize;
                let piece = self.entries.piece(at, self.entries.all[at].range.clone());
                let of_operation =
                    &mut self.flight.operations.pieces[operation * MAX_PIECES..][..MAX_PIECES];
                let end = of_operation[..pieces].last_mut();
                let adjacent = end.filter(|end| end.at.wrapping_add(end.len) == piece.at);
                let fits = self.entries.offset(at) == start + bytes as u64
                    && bytes + piece.len <= OPERATION_BYTES
                    && (adjacent.is_some() || pieces < MAX_PIECES);
                let alone = |at: u32| self.entries.all[at as usize].alone;
                if last != NONE && (!fits || alone(number) || alone(last)) {
                    break;
                }
                if let Some(end) = adjacent {
                    end.len += piece.len;
                } else {
                    of_operation[pieces] = piece;
                    pieces += 1;
                }
                bytes += piece.len;
                let entry = &mut self.entries.all[at];
                (entry.state, entry.listed) = (EntryState::Writing, false);
                entry.before = mem::replace(&mut last, number);
                self.list.pop();
            }
            self.last[operation] = last;
            self.start(operation, Direction::Write, first as usize, pieces);
        }
    }

    /// Starts an operation with so many pieces, on the ranges of the entries from `first` to its last.
    fn start(&mut self, operation: usize, direction: Direction, first: usize, pieces: usize) {
        let (id, offset) = (operation * MAX_PIECES, self.entries.offset(first));
        // SAFETY: nobody else uses these bytes until the operation has ended: they are the spare record of
        // this operation, or nobody writes them in the state of writing. The mapping lives until no operation is
        // under way or is left to the kernel. No other operation has these pieces.
        unsafe { self.flight.start(id as u32, direction, offset, id..id + pieces) };
    }

    /// Waits until an operation has ended, unless none is under way, and reports a failure.
    fn wait(&mut self) -> Result<()> {
        let next = self.flight.next(self.records.file.timeout);
        if let Some(ended) = next.map_err(|error| self.stopped(error))? {
            self.ended(ended);
        }
        self.report()
    }

    /// Starts what was accepted, and notes what has ended.
    fn poll(&mut self) -> Result<()> {
        while let Some(ended) = self.flight.poll().map_err(|error| self.stopped(error))? {
            self.ended(ended);
        }
        Ok(())
    }

    fn stopped(&self, error: io::Error) -> Error {
        self.records.stopped(error, self.flight.under_way)
    }

    /// Notes the end of an operation. One of several records that failed is tried again with each alone.
    fn ended(&mut self, (id, result): Ended) {
        let operation = id as usize / MAX_PIECES;
        let mut last = self.last[operation];
        // This cannot fail: the operation was taken from there.
        let _ = self.idle.push(operation);
        let QueueEntry { state, before, .. } = self.entries.all[last as usize];
        let (reading, several, mut bytes) = (state == EntryState::Reading, before != NONE, 0);
        while last != NONE {
            let at = last as usize;
            let entry = &mut self.entries.all[at];
            last = entry.before;
            bytes += entry.range.len();
            match &result {
                Ok(()) if reading => {
                    self.entries.merge(at, operation);
                    self.enlist(at);
                }
                Ok(()) => self.entries.release(at),
                Err(_) => {
                    (entry.state, entry.alone) = (EntryState::Filling, !reading);
                    if self.entries.is_whole(at) {
                        self.enlist(at);
                    }
                }
            }
        }
        match result {
            Ok(()) if !reading => {
                DiskCounters::add(&self.records.counters.writes, 1);
                DiskCounters::add(&self.records.counters.written_bytes, bytes);
            }
            Err(failure) if !several => drop(self.failure.get_or_insert(failure)),
            _ => {}
        }
    }

    /// Returns the first failure as an error.
    fn report(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), |failure| Err(self.records.failed(failure)))
    }
}
