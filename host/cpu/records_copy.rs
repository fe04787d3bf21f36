//! Copies of rows to the slots of some layers, from records that were read from a file.

use std::ops::Range;

use avsg_device::one_request::{ROW, SLOT};
use avsg_device::stage_two::share_start;

use super::worker_pool::{Stage, WorkerPool, copy_nanoseconds};
use crate::call::HostCall;
use crate::copy::Copier;
use crate::disk::Store;
use crate::plan::{MissRecords, Plan};
use crate::resources::Resources;
use crate::system::address::Address;
use crate::{Error, Result};

/// The transfer of one plan to some layers. Threads share it; each copies records of its own.
pub(super) struct RecordsCopy<'a> {
    pub resources: &'a Resources,
    pub store: &'a Store,
    pub copier: Copier,
    pub plan: &'a Plan,
    pub records: &'a MissRecords,
    pub call: &'a HostCall<'a>,
    pub record_bytes: usize,
    /// The memory for records of which `first` is the first.
    pub bounce: Address<u8>,
    pub first: usize,
}

impl<'a> RecordsCopy<'a> {
    /// Returns the transfer of a plan.
    ///
    /// # Errors
    /// If the plan was made for a pool in memory, which the engine has refused.
    pub fn new(
        resources: &'a Resources,
        store: &'a Store,
        copier: Copier,
        plan: &'a Plan,
        call: &'a HostCall<'a>,
    ) -> Result<Self> {
        let records = plan.records.as_deref().ok_or_else(Error::broken_device)?;
        let record_bytes = store.layout().record_bytes(plan.indexer);
        let (bounce, first) = (Address(core::ptr::null_mut()), 0);
        Ok(Self { resources, store, copier, plan, records, call, record_bytes, bounce, first })
    }

    /// Returns the row of a record.
    pub fn row(&self, record: usize) -> usize {
        self.plan.miss[ROW][self.records.first_place(record)] as usize
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
        let Some(&layer) = self.call.layers.iter().find(lost) else { return };
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
        for &layer in self.call.layers {
            let mut from = self.store.layout().row_range(layer).start;
            for (i, segment) in self.resources.pool.format().as_slice().iter().enumerate() {
                let source = |n: usize| {
                    let record = self.records.number(places[n] as usize);
                    self.address(record).cast_const().wrapping_add(from)
                };
                // SAFETY: the sources are parts of records (`# Safety`). Stage One gives slots below S,
                // each to one miss of one request, so that destinations are distinct and in the buffer,
                // which does not overlap the records.
                unsafe {
                    self.copier.copy_rows(places.len(), segment.bytes, source, |n| {
                        self.slot(layer, places[n] as usize, i)
                    });
                }
                from += segment.bytes;
            }
        }
    }

    /// Copies all records of the plan, which are in the bounce buffer, in shares of threads.
    ///
    /// # Errors
    /// If a thread panicked.
    pub fn share(&self, workers: &WorkerPool) -> Result<()> {
        let (count, cores) = (self.records.count(), self.resources.config.cores);
        let piece = |core: usize, _: usize| {
            let range = share_start(count, core, cores)..share_start(count, core + 1, cores);
            // SAFETY: all records are in memory, and shares do not overlap.
            unsafe { self.copy(range) };
        };
        let row_bytes = self.resources.pool.format().bytes();
        let rows = self.plan.misses * self.call.layers.len();
        let nanoseconds = copy_nanoseconds(rows, row_bytes);
        workers.launch(nanoseconds, None, Some(Stage { pieces: cores, run: &piece }))?;
        Ok(())
    }

    /// Copies the rows that only this step has.
    pub fn copy_fresh(&self) {
        let (plan, rows) = (self.plan, &self.plan.miss[ROW]);
        let served = (0..plan.requests).filter(|&request| plan.fresh && plan.missed(request));
        let places = served.flat_map(|request| plan.places(request));
        for place in places.filter(|&place| rows[place] < 0) {
            let token = plan.cu_q[self.request_of(place)] as usize + !rows[place] as usize;
            for (index, &layer) in self.call.layers.iter().enumerate() {
                let fresh = self.call.fresh_of(index).unwrap_or(&[]);
                let segments = self.resources.pool.format().as_slice().iter();
                for (i, (segment, rows)) in segments.zip(fresh).enumerate() {
                    // `check::call` has checked that the slice holds a row of every token.
                    let from = &rows[token * segment.stride..][..segment.bytes];
                    // SAFETY: the slot is one of the buffer, which has room for the segment and which no
                    // input overlaps.
                    unsafe {
                        let to = self.slot(layer, place, i);
                        core::ptr::copy_nonoverlapping(from.as_ptr(), to, segment.bytes);
                    }
                }
            }
        }
    }

    /// Returns the request of a miss.
    fn request_of(&self, place: usize) -> usize {
        let token = (place / self.plan.k) as i32;
        self.plan.cu_q[..=self.plan.requests].partition_point(|&at| at <= token) - 1
    }

    /// Returns the address of a segment of the slot of a miss in one layer.
    fn slot(&self, layer: usize, place: usize, segment: usize) -> *mut u8 {
        let (state, slot) = (self.plan.state[self.request_of(place)], self.plan.miss[SLOT][place]);
        let view = self.resources.buffer.checked_view(state as usize, layer, segment);
        view.ptr(slot as usize)
    }
}
