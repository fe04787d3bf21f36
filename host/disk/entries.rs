//! The records in the queue of writes, whose rows come layer by layer.

use std::ops::Range;
use std::slice;
use std::sync::Arc;

use super::flight::Unmoved;
use super::info::DiskCounters;
use super::io::Piece;
use super::records::Records;
use crate::Result;
use crate::system::mapping::Mapping;
use crate::system::reserve;

const WHAT: &str = "queue of writes";
/// The number of a record that is none.
const NONE: usize = usize::MAX;

/// What happens to the record of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryState {
    Free,
    /// Its memory may change.
    Filling,
    /// The other bytes of its blocks are read into this place of the second memory.
    Reading(usize),
    /// They were read.
    Read(usize),
    Writing,
    /// Its write has failed, and will be tried again.
    Failed,
}

/// A record in the queue.
#[derive(Debug, Clone)]
pub(super) struct QueueEntry {
    pub state: EntryState,
    pub indexer: usize,
    pub row: usize,
    /// Rows that have arrived.
    pub rows: usize,
    /// The bytes of the record that are written, in whole blocks.
    pub range: Range<usize>,
    /// Larger in later entries.
    pub age: u64,
}

/// The entries of a queue of writes, and their memory. The kernel reads the memory while records are
/// written; as it is a mapping, it stays the kernel's until then also if the process unmaps it.
pub(super) struct QueueEntries {
    records: Arc<Records>,
    pub memory: Mapping,
    /// Bytes from one record in memory to the next.
    stride: usize,
    pub all: Vec<QueueEntry>,
    /// The number of the record of each entry.
    record: Vec<usize>,
    /// A bit per layer for each entry.
    arrived: Vec<u64>,
    /// The words of `arrived` that each entry has.
    words: usize,
    /// The entries that are free.
    pub free: Vec<usize>,
    ages: u64,
    /// The first failure that no call has reported.
    pub failure: Option<Unmoved>,
}

impl QueueEntries {
    pub fn new(records: &Arc<Records>, count: usize, spare: usize) -> Result<Self> {
        let layout = &records.layout;
        let stride = layout.max_record_bytes().next_multiple_of(records.memory_alignment.max(64));
        let words = layout.layers().div_ceil(64);
        let none = QueueEntry {
            state: EntryState::Free,
            indexer: 0,
            row: 0,
            rows: 0,
            range: 0..0,
            age: 0,
        };
        let mut free = reserve::with_capacity(WHAT, count)?;
        free.extend((0..count).rev());
        Ok(Self {
            records: Arc::clone(records),
            memory: Mapping::anonymous(WHAT, stride * (count + spare))?,
            stride,
            all: reserve::filled(WHAT, count, none)?,
            record: reserve::filled(WHAT, count, NONE)?,
            arrived: reserve::filled(WHAT, count * words, 0)?,
            words,
            free,
            ages: 0,
            failure: None,
        })
    }

    /// Returns the entry of the record with this number.
    pub fn find(&self, record: usize) -> Option<usize> {
        let places = || self.record.iter().position(|&other| other == record);
        self.records.queued.get(record).then(places).flatten()
    }

    /// Returns whether the file is read for an entry.
    pub fn is_reading(&self) -> bool {
        self.all.iter().any(|entry| matches!(entry.state, EntryState::Reading(_)))
    }

    /// Returns the entries that are wanted, the oldest first, at most `most`.
    pub fn oldest<const N: usize>(
        &self,
        wanted: impl Fn(&QueueEntry) -> bool,
    ) -> heapless::Vec<usize, N> {
        let mut found = heapless::Vec::<usize, N>::new();
        let mut after = 0;
        while !found.is_full() {
            let later = self.all.iter().enumerate();
            let later = later.filter(|(_, entry)| entry.age > after && wanted(entry));
            let Some((at, entry)) = later.min_by_key(|(_, entry)| entry.age) else { break };
            after = entry.age;
            // This cannot fail: the condition of the loop says that there is room.
            let _ = found.push(at);
        }
        found
    }

    /// Takes a free entry for a record that is not in the queue.
    pub fn take(&mut self, indexer: usize, row: usize) -> Option<usize> {
        let at = self.free.pop()?;
        self.ages += 1;
        let (state, age) = (EntryState::Filling, self.ages);
        self.all[at] = QueueEntry { state, indexer, row, rows: 0, range: 0..0, age };
        self.record[at] = self.records.layout.record_number(indexer, row);
        let words = self.words;
        self.arrived[at * words..][..words].fill(0);
        // What has not arrived, and the padding, is written as zeros.
        self.bytes_mut(at).fill(0);
        Some(at)
    }

    /// Returns whether the row of the layer at this place among those of the indexer is in the entry.
    pub fn has(&self, at: usize, place: usize) -> bool {
        self.arrived[at * self.words + place / 64] >> (place % 64) & 1 == 1
    }

    /// Notes that the row at this place has arrived.
    pub fn note(&mut self, at: usize, place: usize) {
        if !self.has(at, place) {
            self.all[at].rows += 1;
            self.arrived[at * self.words + place / 64] |= 1 << (place % 64);
        }
    }

    /// Returns whether the rows of all layers are in the entry.
    pub fn is_whole(&self, at: usize) -> bool {
        self.all[at].rows == self.records.layout.group_layers(self.all[at].indexer)
    }

    /// Returns the first place that has arrived, and the one behind the last.
    pub fn span(&self, at: usize) -> Range<usize> {
        let mut places = (0..self.records.layout.group_layers(self.all[at].indexer))
            .filter(|&place| self.has(at, place));
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
        self.piece(at, 0..self.records.layout.record_bytes(self.all[at].indexer))
    }

    /// Returns the parts of these bytes of a record that hold rows which may be in the file and are not in the entry.
    pub fn missing<'a>(
        &'a self,
        at: usize,
        range: &'a Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> + 'a {
        let QueueEntry { indexer, row, .. } = self.all[at];
        let (layout, stride) = (&self.records.layout, self.records.layout.row_stride());
        let places =
            range.start / stride..range.end.div_ceil(stride).min(layout.group_layers(indexer));
        let missing = places.filter(move |&place| {
            let number = layout.row_number(indexer, row, place);
            !self.has(at, place) && self.records.present.get(number)
        });
        missing
            .map(move |place| range.start.max(place * stride)..range.end.min((place + 1) * stride))
    }

    /// Puts what was read of missing rows into the blocks of a record.
    pub fn merge(&mut self, at: usize, spare: usize) {
        let range = self.all[at].range.clone();
        for part in self.missing(at, &range) {
            let from = self.piece(self.all.len() + spare, part.clone());
            let to = self.piece(at, part);
            // SAFETY: entries and spare records do not overlap. The read of the spare record has ended, and
            // the entry is not being written.
            unsafe { to.at.copy_from_nonoverlapping(from.at, to.len) };
        }
    }

    /// Notes the end of an operation of an entry.
    pub fn ended(&mut self, at: usize, result: std::result::Result<(), Unmoved>) {
        let entry = &mut self.all[at];
        match (entry.state, result) {
            (EntryState::Reading(spare), Ok(())) => entry.state = EntryState::Read(spare),
            (EntryState::Reading(_), Err(failure)) => {
                entry.state = EntryState::Filling;
                self.failure.get_or_insert(failure);
            }
            (_, Ok(())) => {
                DiskCounters::add(&self.records.counters.writes, 1);
                DiskCounters::add(&self.records.counters.written_bytes, entry.range.len());
                entry.state = EntryState::Free;
                self.free.push(at);
                self.records.queued.clear(std::mem::replace(&mut self.record[at], NONE));
            }
            (_, Err(failure)) => {
                entry.state = EntryState::Failed;
                self.failure.get_or_insert(failure);
            }
        }
    }
}
