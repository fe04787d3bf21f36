//! Reads of many records at once.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::file::MAX_PIECES;
use super::flight::{Flight, Unmoved};
use super::io::{Direction, Piece};
use super::store::Store;
use crate::system::address::Address;
use crate::system::reserve;
use crate::{Result, ensure};

const WHAT: &str = "list of records to read";
/// The most bytes of an operation. Longer ones would not be faster.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// A record to read.
#[derive(Clone, Copy)]
struct Wanted {
    /// Offset in the file.
    offset: u64,
    bytes: usize,
    to: Address<u8>,
    /// The place in the list.
    number: usize,
}

impl Wanted {
    /// Returns whether the memory of another record is behind that of this one.
    fn is_before(&self, other: &Self) -> bool {
        self.to.0.wrapping_add(self.bytes) == other.to.0
    }
}

/// A list of records to read, and the queue that reads them. It belongs to one thread at a time, and what it
/// needs is allocated when it is made.
pub struct Reader {
    store: Arc<Store>,
    flight: Flight,
    wanted: Vec<Wanted>,
    /// The places in the list of records that are in memory, because they were in the queue of writes.
    there: Vec<usize>,
}

impl Reader {
    /// Returns a reader for lists of up to `most` records.
    ///
    /// # Errors
    /// If memory is refused. A kernel that refuses io_uring is no error: the reader then reads in the calling
    /// thread, as [`Store::read_record`] does.
    pub fn new(store: &Arc<Store>, most: usize) -> Result<Self> {
        Self::of(store, most, true)
    }

    /// Returns a reader that has a queue of io_uring, or reads in the calling thread.
    pub(super) fn of(store: &Arc<Store>, most: usize, queue: bool) -> Result<Self> {
        Ok(Self {
            store: Arc::clone(store),
            flight: store.records.flight(most, queue)?,
            wanted: reserve::with_capacity(WHAT, most)?,
            there: reserve::with_capacity(WHAT, most)?,
        })
    }

    /// Returns whether reads use io_uring. Without it a caller with several threads does better with
    /// [`Store::read_record`] in each of them.
    pub fn io_uring(&self) -> bool {
        self.flight.queue.is_some()
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Puts a record on the list and returns its number in it, counted from 0 since the last
    /// `Self::finish`. Records that are neighbours in the file share a read. A record whose write is under way is
    /// copied from the queue of writes. It takes no lock unless a record is there, and allocates nothing unless it
    /// returns an error.
    ///
    /// # Errors
    /// If the pool belongs to the process that forked this one, there is no such record, the list is full, the address
    /// is not aligned, reads of an earlier list are still under way ([`Self::settle`]), or the queue of writes is not
    /// free in time.
    ///
    /// # Safety
    /// `to` is valid for writes of [`Layout::record_bytes`](super::Layout::record_bytes), and no other code
    /// uses these bytes until `Self::finish` has called `done` for this number, or has returned and
    /// [`Self::under_way`] is 0.
    pub unsafe fn push(&mut self, indexer: usize, row: usize, to: *mut u8) -> Result<usize> {
        let (number, record) = (self.expect_room(to)?, self.store.layout().record_bytes(indexer));
        // SAFETY: `to` is valid for writes of a record, and no other code uses it (`# Safety`).
        if unsafe { self.store.queued_record(indexer, row, to) }? {
            self.there.push(number);
        } else {
            // SAFETY: as this function demands (`# Safety`).
            unsafe { self.push_part(indexer, row, 0..record, to)? };
        }
        Ok(number)
    }

    /// Puts these bytes of an existing record, whole blocks, on the list, which are read from the file.
    ///
    /// # Errors
    /// If the list is full, the address is not aligned, or reads of an earlier list are still under way.
    ///
    /// # Safety
    /// As for [`Self::push`].
    pub(super) unsafe fn push_part(
        &mut self,
        indexer: usize,
        row: usize,
        part: Range<usize>,
        to: *mut u8,
    ) -> Result<()> {
        let (number, layout) = (self.expect_room(to)?, self.store.layout());
        let offset = layout.record_offset(indexer, row) + part.start as u64;
        let (bytes, to) = (part.len(), Address(to.wrapping_add(part.start)));
        self.wanted.push(Wanted { offset, bytes, to, number });
        Ok(())
    }

    /// Returns the number of the next record, or an error if it cannot be put on the list.
    fn expect_room(&self, to: *mut u8) -> Result<usize> {
        let number = self.wanted.len() + self.there.len();
        ensure!(number < self.wanted.capacity(), "records to read" is number + 1, but
            "the reader was made for {}", self.wanted.capacity(); "make a reader for a longer list");
        ensure!(self.flight.under_way == 0, "reads under way" is self.flight.under_way, but
            "an earlier list ran out of time"; "wait for them by settle, or drop the reader");
        let alignment = self.store.records.memory_alignment;
        ensure!(to.addr().is_multiple_of(alignment), "address of a record" is format!("{to:p}"), but
            "direct reads need multiples of {alignment}"; "align the memory, or read buffered");
        Ok(number)
    }

    /// Reads the records of the list: `Self::start` and `Self::finish`.
    ///
    /// # Errors
    /// As for `Self::finish`.
    pub fn run(&mut self, done: &mut dyn FnMut(usize)) -> Result<()> {
        self.start();
        self.finish(done)
    }

    /// Starts to read the records of the list, of which as many are in flight as the queue takes, and returns
    /// while they are read. It allocates nothing.
    pub(crate) fn start(&mut self) {
        let Self { flight, wanted, .. } = self;
        // A list in order takes no stack for recursion.
        wanted.sort_unstable_by_key(|wanted| wanted.offset);
        let mut start = 0;
        while start < wanted.len() {
            let end = start + neighbours(&wanted[start..]);
            let (pieces, mut last) = (&mut flight.operations.pieces, start);
            pieces[start] = Piece { at: wanted[start].to.0, len: 0 };
            for (n, record) in wanted[start..end].iter().enumerate() {
                if n > 0 && !wanted[start + n - 1].is_before(record) {
                    last += 1;
                    pieces[last] = Piece { at: record.to.0, len: 0 };
                }
                pieces[last].len += record.bytes;
            }
            // SAFETY: each piece is the memory of records, which no other code uses until `done` was called
            // for it or nothing is under way (`push`). An operation has the number of its first record, and none has
            // the pieces of another.
            unsafe {
                let (id, offset) = (start as u32, wanted[start].offset);
                flight.start(id, Direction::Read, offset, start..last + 1);
            }
            start = end;
        }
        // An error of the queue comes again when the reads are awaited.
        let _ = flight.pump(Duration::ZERO);
    }

    /// Returns whether `Self::finish` will not wait, after it has started reads for which there was no room.
    ///
    /// # Errors
    /// The error of the queue, after which `Self::finish` fails, too.
    pub(crate) fn is_done(&mut self) -> Result<bool> {
        let (records, flight) = (&self.store.records, &mut self.flight);
        records.birth.check("pool")?;
        let pumped = flight.pump(Duration::ZERO);
        pumped.map_err(|error| records.stopped(error, flight.under_way))?;
        Ok(flight.has_ended())
    }

    /// Waits for the reads of the list, and empties it. It calls `done` with the number of each record that is
    /// in memory, while others are still read. Rows are not checked: [`Store::row_in`] does that. It allocates
    /// nothing unless it returns an error.
    ///
    /// # Errors
    /// If a record cannot be read: the error names its row, its offset and errno. Other reads of the list have
    /// been awaited then, and `done` was called for those that succeeded. If none completes within the time
    /// limit, reads are still under way afterwards.
    pub(crate) fn finish(&mut self, done: &mut dyn FnMut(usize)) -> Result<()> {
        let result = self.finish_list(done);
        self.clear();
        result
    }

    /// Empties the list, of which nothing was read.
    pub fn clear(&mut self) {
        self.there.clear();
        self.wanted.clear();
    }

    /// Returns the number of reads that may still write to their memory: after `Self::start`, and after an error
    /// of `Self::finish` about the time limit. A reader that is dropped waits for them, at most for that time.
    pub fn under_way(&self) -> usize {
        self.flight.under_way
    }

    /// Waits for reads that are still under way, and returns whether none is left. A forked child, which
    /// does not have the memory of the ring, waits for none.
    pub fn settle(&mut self, timeout: Duration) -> bool {
        let inherited = self.under_way() > 0 && self.store.records.birth.is_past();
        !inherited && self.flight.settle(timeout)
    }

    fn finish_list(&mut self, done: &mut dyn FnMut(usize)) -> Result<()> {
        let Self { store, flight, wanted, there } = self;
        let records = &store.records;
        records.birth.check("pool")?;
        there.iter().for_each(|&number| done(number));
        let mut failure: Option<Unmoved> = None;
        while let Some((id, result)) = flight.next(records.file.timeout).map_err(|error| {
            flight.abandon();
            records.stopped(error, flight.under_way)
        })? {
            let span = &wanted[id as usize..];
            let moved = if result.is_ok() { &span[..neighbours(span)] } else { &[] };
            records.count_read(moved.iter().map(|wanted| wanted.bytes).sum(), moved.len());
            moved.iter().for_each(|wanted| done(wanted.number));
            if let Err(new) = result {
                failure.get_or_insert(new);
            }
        }
        failure.map_or(Ok(()), |failure| Err(records.failed(failure)))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // The memory of late reads may be used for something else soon.
        self.settle(self.store.timeout());
    }
}

/// Returns how many of these records, sorted by offset, are read by one operation: the first and those
/// behind it that are its neighbours in the file.
fn neighbours(wanted: &[Wanted]) -> usize {
    let (mut bytes, mut pieces) = (wanted[0].bytes, 1);
    let pairs = wanted.windows(2).take_while(|pair| {
        bytes += pair[1].bytes;
        pieces += usize::from(!pair[0].is_before(&pair[1]));
        let adjacent = pair[0].offset + pair[0].bytes as u64 == pair[1].offset;
        adjacent && bytes <= MAX_BYTES && pieces <= MAX_PIECES
    });
    1 + pairs.count()
}
