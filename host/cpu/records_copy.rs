//! Copies of rows to the slots of some layers, from records that were read from a file.

use std::ops::Range;
use std::sync::Arc;

use avsg_device::one_request::{ROW, SLOT};

use super::worker_pool::copy_nanoseconds;
use crate::copy::Copier;
use crate::disk::Store;
use crate::plan::{MissRecords, Plan};
use crate::resources::Resources;
use crate::system::address::Address;
use crate::system::mapping::Mapping;
use crate::{Error, Result};

/// The transfer of one plan to some layers, without the fresh rows. Threads share it; each copies records of its own.
#[derive(Clone)]
pub(super) struct RecordsCopy<'a> {
    pub resources: &'a Resources,
    pub store: &'a Store,
    copier: Copier,
    pub indexer: usize,
    k: usize,
    /// `[requests + 1]`
    cu_q: &'a [i32],
    state: &'a [i32],
    rows: &'a [i32],
    slots: &'a [i32],
    pub records: &'a MissRecords,
    layers: &'a [usize],
    record_bytes: usize,
    /// The memory for so many records, of which `first` is the first.
    bounce: Address<u8>,
    pub room: usize,
    first: usize,
    /// Whether the plan holds all records when the transfer has ended.
    pub kept: bool,
}

impl<'a> RecordsCopy<'a> {
    /// Returns the transfer of a plan, and the memory of its records: that of the plan if several layers share them, or
    /// `own`.
    ///
    /// # Errors
    /// If the plan or the engine was made for a pool in memory, which the engine has refused.
    pub fn new(
        (resources, copier): (&'a Resources, Copier),
        plan: &'a Plan,
        layers: &'a [usize],
        own: Option<&Arc<Mapping>>,
    ) -> Result<(Self, Arc<Mapping>)> {
        let records = plan.records.as_deref().ok_or(Error::Broken)?;
        let store: &Store = resources.pool.store().ok_or(Error::Broken)?;
        let Plan { indexer, k, requests, ref cu_q, ref state, ref miss, .. } = *plan;
        let shared = store.layout().group_layers(indexer) > 1;
        let memory = if shared { records.bounce.as_ref() } else { own };
        let memory = Arc::clone(memory.ok_or(Error::Broken)?);
        let record_bytes = store.layout().record_bytes(indexer);
        let room = memory.len() / record_bytes;
        let copy = Self {
            resources,
            store,
            copier,
            indexer,
            k,
            cu_q: &cu_q[..=requests],
            state,
            rows: &miss[ROW],
            slots: &miss[SLOT],
            records,
            layers,
            record_bytes,
            bounce: Address(memory.ptr()),
            room,
            first: 0,
            kept: shared && records.count <= room,
        };
        Ok((copy, memory))
    }

    /// Notes that a list begins with this record, which is the first in memory unless the plan holds all.
    pub fn start_at(&mut self, record: usize) {
        self.first = if self.kept { 0 } else { record };
    }

    /// Returns the nanoseconds in which one core copies all records.
    pub fn nanoseconds(&self) -> u64 {
        let rows = self.records.places_of(0..self.records.count).len();
        let row_bytes = self.resources.pool.format().bytes();
        copy_nanoseconds(rows * self.layers.len(), row_bytes)
    }

    /// Returns whether a record must be read: the plan does not hold it, or it was written after the store's stamps
    /// had returned this number.
    pub fn is_missing(&self, record: usize, held: Option<u64>) -> bool {
        let number = self.store.layout().record_number(self.indexer, self.row(record));
        held.is_none_or(|stamp| self.store.stamps.written_since(number, stamp))
    }

    /// Returns the row of a record.
    pub fn row(&self, record: usize) -> usize {
        self.rows[self.records.places_of(record..record + 1)[0] as usize] as usize
    }

    /// Returns the address that a record is read to.
    pub fn address(&self, record: usize) -> *mut u8 {
        self.bounce.0.wrapping_add((record - self.first) * self.record_bytes)
    }

    /// Checks the rows of the layers in a record. If one is not whole, it notes that for each miss of the record.
    ///
    /// # Safety
    /// The record is at its address, and nothing writes it during the call.
    unsafe fn check(&self, record: usize) {
        // SAFETY: the record is in memory and unchanged during the call (`# Safety`).
        let read = unsafe { core::slice::from_raw_parts(self.address(record), self.record_bytes) };
        let row = self.row(record);
        let lost = |&&layer: &&usize| !self.store.is_whole(read, layer, row);
        let Some(&layer) = self.layers.iter().find(lost) else { return };
        for &place in self.records.places_of(record..record + 1) {
            self.records.lost[self.request_of(place as usize)].note(layer, row);
            self.records.lost_places.set(place as usize);
        }
    }

    /// Checks the rows of the layers in a range of records and copies them to their slots. Those that are not
    /// whole go to slots of requests that are left out, whose tables are emptied after the transfer.
    ///
    /// # Safety
    /// The records of the range are at their addresses, and nothing else writes them during the call. No other
    /// thread accesses the slots of their misses.
    pub unsafe fn copy(&self, range: Range<usize>) {
        // SAFETY: the records are in memory and unchanged during the call (`# Safety`).
        range.clone().for_each(|record| unsafe { self.check(record) });
        let places = self.records.places_of(range);
        for &layer in self.layers {
            let mut from = self.store.layout().row_range(layer).start;
            for (i, segment) in self.resources.pool.format().as_slice().iter().enumerate() {
                let source = |n: usize| {
                    let record = self.records.number(places[n] as usize);
                    self.address(record).cast_const().wrapping_add(from)
                };
                let slot = |n: usize| self.slot(layer, places[n] as usize, i);
                // SAFETY: the sources are parts of records (`# Safety`). Stage One gives slots below S,
                // each to one miss of one request, so that destinations are distinct and in the buffer,
                // which does not overlap the records.
                unsafe { self.copier.copy_rows(places.len(), segment.bytes, source, slot) };
                from += segment.bytes;
            }
        }
    }

    /// Returns the request of a miss.
    fn request_of(&self, place: usize) -> usize {
        let token = (place / self.k) as i32;
        self.cu_q.partition_point(|&at| at <= token) - 1
    }

    /// Returns the address of a segment of the slot of a miss in one layer.
    fn slot(&self, layer: usize, place: usize, segment: usize) -> *mut u8 {
        let (state, slot) = (self.state[self.request_of(place)], self.slots[place]);
        let view = self.resources.buffer.checked_view(state as usize, layer, segment);
        view.ptr(slot as usize)
    }
}
