//! The records in the queue of writes, whose rows come layer by layer.

use std::mem;
use std::ops::Range;
use std::slice;
use std::sync::Arc;

use super::io::Piece;
use super::records::Records;
use crate::Result;
use crate::system::mapping::Mapping;
use crate::system::reserve;

const WHAT: &str = "queue of writes";
/// The number of an entry that is none.
pub(super) const NONE: u32 = u32::MAX;

/// What happens to the record of an entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum EntryState {
    #[default]
    Free,
    /// Its memory may change.
    Filling,
    /// The other bytes of its blocks are read into a spare record.
    Reading,
    /// They were read, and no row has come since.
    Merged,
    Writing,
}

/// A record in the queue.
#[derive(Debug, Clone, Default)]
pub(super) struct QueueEntry {
    pub state: EntryState,
    /// Whether the entry is on the list of those that are written next.
    pub listed: bool,
    /// Whether it is written without its neighbours, because a write with them has failed.
    pub alone: bool,
    pub indexer: u32,
    pub row: usize,
    /// The entry before it in its operation.
    pub before: u32,
    /// The next entry whose record has the same hash.
    next: u32,
    /// The bytes of the record that are read or written, in whole blocks.
    pub range: Range<usize>,
}

/// The entries of a queue of writes, and their memory. The kernel reads the memory while records are
/// written; as it is a mapping, it stays the kernel's until then also if the process unmaps it.
pub(super) struct QueueEntries {
    records: Arc<Records>,
    pub memory: Mapping,
    /// Bytes from one record in memory to the next.
    stride: usize,
    pub all: Vec<QueueEntry>,
    /// The first entry for each hash of a record's number.
    heads: Vec<u32>,
    /// A bit per layer for each entry.
    arrived: Vec<u64>,
    /// The words of `arrived` that each entry has.
    words: usize,
    /// The entries that are free. Those that are taken one after another are neighbours in memory, if possible.
    pub free: Vec<u32>,
}

impl QueueEntries {
    pub fn new(records: &Arc<Records>, count: usize, spare: usize) -> Result<Self> {
        let layout = &records.layout;
        let stride = layout.max_record_bytes().next_multiple_of(records.memory_alignment.max(64));
        let words = layout.max_group_layers().div_ceil(64);
        let bytes = (stride * (count + spare)).next_multiple_of(rustix::param::page_size());
        Ok(Self {
            records: Arc::clone(records),
            memory: Mapping::unforked(WHAT, bytes, None)?,
            stride,
            all: reserve::filled(WHAT, count, QueueEntry::default())?,
            heads: reserve::filled(WHAT, count.next_power_of_two(), NONE)?,
            arrived: reserve::filled(WHAT, count * words, 0)?,
            words,
            free: reserve::collected(WHAT, count, (0..count as u32).rev())?,
        })
    }

    /// Returns the most bytes that each entry takes beside its record of up to `layers` layers.
    pub fn bytes_beside(layers: usize) -> usize {
        // `heads` has at most two for each entry; the list of the queue is one like `free`.
        size_of::<QueueEntry>() + 4 * size_of::<u32>() + layers.div_ceil(64) * size_of::<u64>()
    }

    /// Returns the place in `heads` for the number of a record.
    fn hash(&self, record: usize) -> usize {
        let hash = (record as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        hash as usize & (self.heads.len() - 1)
    }

    /// Returns the number of an entry's record.
    pub fn record(&self, at: u32) -> usize {
        let QueueEntry { indexer, row, .. } = self.all[at as usize];
        self.records.layout.record_number(indexer as usize, row)
    }

    /// Returns the entry of the record with this number.
    pub fn find(&self, record: usize) -> Option<usize> {
        if !self.records.queued.get(record) {
            return None;
        }
        let mut at = self.heads[self.hash(record)];
        while at != NONE && self.record(at) != record {
            at = self.all[at as usize].next;
        }
        (at != NONE).then_some(at as usize)
    }

    /// Returns whether the memory of an entry may change.
    pub fn is_open(&self, at: usize) -> bool {
        matches!(self.all[at].state, EntryState::Filling | EntryState::Merged)
    }

    /// Takes a free entry for a record that is not in the queue.
    pub fn take(&mut self, indexer: usize, row: usize) -> Option<usize> {
        let number = self.free.pop()?;
        let (at, record) = (number as usize, self.records.layout.record_number(indexer, row));
        let (state, indexer, head) = (EntryState::Filling, indexer as u32, self.hash(record));
        let next = mem::replace(&mut self.heads[head], number);
        self.all[at] = QueueEntry { state, indexer, row, next, ..QueueEntry::default() };
        self.records.queued.set(record);
        let words = self.words;
        self.arrived[at * words..][..words].fill(0);
        // What has not arrived, and the padding, is written as zeros.
        self.bytes_mut(at).fill(0);
        Some(at)
    }

    /// Takes a record that was written out of the queue.
    pub fn release(&mut self, at: usize) {
        let (number, record) = (at as u32, self.record(at as u32));
        let (head, next) = (self.hash(record), self.all[at].next);
        if self.heads[head] == number {
            self.heads[head] = next;
        } else {
            let mut other = self.heads[head] as usize;
            while self.all[other].next != number {
                other = self.all[other].next as usize;
            }
            self.all[other].next = next;
        }
        self.all[at].state = EntryState::Free;
        self.free.push(number);
        self.records.queued.clear(record);
    }

    /// Returns the offset in the file of an entry's range.
    pub fn offset(&self, at: usize) -> u64 {
        let QueueEntry { indexer, row, ref range, .. } = self.all[at];
        self.records.layout.record_offset(indexer as usize, row) + range.start as u64
    }

    /// Sets the range of an entry to the blocks of the rows that have arrived. Returns whether bytes of others are
    /// in these blocks that may be in the file and are not in the entry.
    pub fn set_range(&mut self, at: usize) -> bool {
        let indexer = self.all[at].indexer as usize;
        let range = self.records.blocks_of(indexer, self.span(at));
        self.all[at].range = range;
        self.all[at].state != EntryState::Merged && self.missing(at).next().is_some()
    }

    /// Returns whether the row of the layer at this place among those of the indexer is in the entry.
    pub fn has(&self, at: usize, place: usize) -> bool {
        self.arrived[at * self.words + place / 64] >> (place % 64) & 1 == 1
    }

    /// Notes that the row at this place has arrived.
    pub fn note(&mut self, at: usize, place: usize) {
        self.all[at].state = EntryState::Filling;
        self.arrived[at * self.words + place / 64] |= 1 << (place % 64);
    }

    /// Returns the number of layers of an entry's record.
    fn layers(&self, at: usize) -> usize {
        self.records.layout.group_layers(self.all[at].indexer as usize)
    }

    /// Returns whether the rows of all layers are in the entry.
    pub fn is_whole(&self, at: usize) -> bool {
        let arrived = &self.arrived[at * self.words..][..self.words];
        arrived.iter().map(|word| word.count_ones() as usize).sum::<usize>() == self.layers(at)
    }

    /// Returns the first place that has arrived, and the one behind the last.
    fn span(&self, at: usize) -> Range<usize> {
        let mut places = (0..self.layers(at)).filter(|&place| self.has(at, place));
        let first = places.next().unwrap_or(0);
        first..places.next_back().unwrap_or(first) + 1
    }

    /// Returns the memory of a part of a record, or of a spare record.
    pub fn piece(&self, at: usize, range: Range<usize>) -> Piece {
        let at = self.memory.ptr().wrapping_add(at * self.stride + range.start);
        Piece { at, len: range.len() }
    }

    /// Returns the record of an entry.
    pub fn bytes(&self, at: usize) -> &[u8] {
        let Piece { at, len } = self.whole(at);
        // SAFETY: the range is that of an entry's record in the mapping, which is initialised. Nobody writes
        // it: `bytes_mut` needs `&mut self`, and the kernel writes spare records only.
        unsafe { slice::from_raw_parts(at, len) }
    }

    /// Returns the record of an entry, to write.
    ///
    /// # Panics
    /// If the entry is being written.
    pub fn bytes_mut(&mut self, at: usize) -> &mut [u8] {
        assert!(self.all[at].state != EntryState::Writing, "the kernel reads the record");
        let Piece { at, len } = self.whole(at);
        // SAFETY: as for `bytes`, and `&mut self` makes the access exclusive.
        unsafe { slice::from_raw_parts_mut(at, len) }
    }

    fn whole(&self, at: usize) -> Piece {
        self.piece(at, 0..self.records.layout.record_bytes(self.all[at].indexer as usize))
    }

    /// Returns the parts of an entry's range that hold rows which may be in the file and are not in the entry.
    fn missing(&self, at: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let QueueEntry { indexer, row, ref range, .. } = self.all[at];
        let (layout, stride) = (&self.records.layout, self.records.layout.row_stride());
        let places = range.start / stride..range.end.div_ceil(stride).min(self.layers(at));
        let missing = places.filter(move |&place| {
            let number = layout.row_number(indexer as usize, row, place);
            !self.has(at, place) && self.records.present.get(number)
        });
        missing
            .map(move |place| range.start.max(place * stride)..range.end.min((place + 1) * stride))
    }

    /// Puts what was read of missing rows into the blocks of a record.
    pub fn merge(&mut self, at: usize, spare: usize) {
        for part in self.missing(at) {
            let from = self.piece(self.all.len() + spare, part.clone());
            let to = self.piece(at, part);
            // SAFETY: entries and spare records do not overlap. The read of the spare record has ended, and
            // the entry is not being written.
            unsafe { to.at.copy_from_nonoverlapping(from.at, to.len) };
        }
        self.all[at].state = EntryState::Merged;
    }
}
