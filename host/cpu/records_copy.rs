//! Copies of rows to the slots of some layers, from records that were read from a file.

use std::ops::Range;
use std::sync::OnceLock;

use avsg_device::one_request::{ROW, SLOT};
use avsg_device::stage_two::share_start;

use super::dispatch;
use super::worker_pool::{Stage, WorkerPool};
use crate::address::Address;
use crate::batch::{Layer, Layers};
use crate::copy::Copier;
use crate::disk::Store;
use crate::plan::{Plan, Records};
use crate::resources::Resources;
use crate::{Error, Result};

/// The transfer of one plan to some layers. Threads share it; each copies records of its own.
pub(super) struct RecordsCopy<'a> {
    pub resources: &'a Resources,
    pub store: &'a Store,
    pub copier: Copier,
    pub plan: &'a Plan,
    pub records: &'a Records,
    pub layers: Layers<'a>,
    /// The first error of a read.
    pub failed: OnceLock<Error>,
}

impl<'a> RecordsCopy<'a> {
    /// Returns the transfer of a plan.
    ///
    /// # Errors
    /// If the plan names a state that does not exist, which the engine has refused.
    pub fn new(
        resources: &'a Resources,
        store: &'a Store,
        copier: Copier,
        (plan, records): (&'a Plan, &'a Records),
        layers: Layers<'a>,
    ) -> Result<Self> {
        let mut states = (0..plan.requests).filter(|&request| plan.missed(request));
        states.try_for_each(|request| {
            let state = plan.state[request] as usize;
            layers.numbers.iter().try_for_each(|&l| resources.buffer.view(state, l, 0).map(drop))
        })?;
        Ok(Self { resources, store, copier, plan, records, layers, failed: OnceLock::new() })
    }

    /// Returns the bytes of a record.
    pub fn record_bytes(&self) -> usize {
        self.store.layout().record_bytes(self.plan.indexer)
    }

    /// Returns the row of a record.
    pub fn row(&self, record: usize) -> usize {
        self.plan.miss[ROW][self.records.first_place(record)] as usize
    }

    /// Returns the address of the slot of the first miss of a record, in the first layer.
    pub fn slot_of(&self, record: usize) -> *mut u8 {
        self.slot(self.layers.numbers[0], self.records.first_place(record), 0)
    }

    /// Returns whether the rows of the layers in a record are whole, and notes for each request that missed
    /// the record if they are not.
    ///
    /// # Safety
    /// The record is at `at`, and nothing writes it during the call.
    unsafe fn check(&self, record: usize, at: *const u8) -> bool {
        // SAFETY: the record is in memory and unchanged during the call (`# Safety`).
        let read = unsafe { core::slice::from_raw_parts(at, self.record_bytes()) };
        let row = self.row(record);
        let damaged = |&&layer: &&usize| !self.store.is_whole(read, layer, row);
        let Some(&layer) = self.layers.numbers.iter().find(damaged) else { return true };
        for &place in self.records.places_of(record..record + 1) {
            self.records.lost[self.request_of(place as usize)].note(layer, row);
        }
        false
    }

    /// Checks the row of a record of one layer that was read into [`Self::slot_of`], and copies it to the
    /// slots of the other misses.
    ///
    /// # Safety
    /// The record is there, and no other thread accesses the slots of its misses during the call.
    pub unsafe fn spread(&self, record: usize) {
        let from = self.slot_of(record);
        // SAFETY: the record is in the slot, and nothing writes it during the call (`# Safety`).
        if unsafe { self.check(record, from) } {
            for &place in &self.records.places_of(record..record + 1)[1..] {
                let bytes = self.resources.pool.format().bytes();
                let to = self.slot(self.layers.numbers[0], place as usize, 0);
                // SAFETY: each miss has a slot of its own, with room for a row.
                unsafe { core::ptr::copy_nonoverlapping(from, to, bytes) };
            }
        }
    }

    /// Checks the rows of the layers in a range of records, the first of which is at `at`, and copies them
    /// to their slots, except for records with a row that is not whole.
    ///
    /// # Safety
    /// The records of the range are in memory from `at` on, and nothing writes them during the call. No
    /// other thread copies a record of the range.
    pub unsafe fn copy(&self, range: Range<usize>, at: *const u8) {
        let (bytes, first, mut start) = (self.record_bytes(), range.start, range.start);
        let address = |record: usize| at.wrapping_add((record - first) * bytes);
        for record in range.clone() {
            // SAFETY: the records are in memory and unchanged during the call (`# Safety`).
            unsafe {
                if !self.check(record, address(record)) {
                    self.copy_whole(start..record, address);
                    start = record + 1;
                }
            }
        }
        // SAFETY: as above.
        unsafe { self.copy_whole(start..range.end, address) };
    }

    /// Copies the rows of a range of records that were checked and have these addresses.
    ///
    /// # Safety
    /// As for [`Self::copy`].
    unsafe fn copy_whole(&self, range: Range<usize>, address: impl Fn(usize) -> *const u8) {
        let places = self.records.places_of(range);
        for &layer in self.layers.numbers {
            let mut from = self.store.layout().row_range(layer).start;
            for (i, segment) in self.resources.pool.format().as_slice().iter().enumerate() {
                let source =
                    |n: usize| address(self.records.number(places[n] as usize)).wrapping_add(from);
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

    /// Copies all records of the plan, which are in memory from `at` on, in shares of threads.
    ///
    /// # Errors
    /// If a thread panicked.
    pub fn share(&self, workers: &WorkerPool, at: *mut u8) -> Result<()> {
        let (count, cores) = (self.records.count(), self.resources.config.cores);
        let (bytes, at) = (self.record_bytes(), &Address(at));
        let piece = |core: usize, _: usize| {
            let range = share_start(count, core, cores)..share_start(count, core + 1, cores);
            let first = at.0.wrapping_add(range.start * bytes);
            // SAFETY: all records are in memory, and shares do not overlap.
            unsafe { self.copy(range, first) };
        };
        let row_bytes = self.resources.pool.format().bytes();
        let rows = self.plan.misses * self.layers.numbers.len();
        let nanoseconds = dispatch::copy_nanoseconds(rows, row_bytes);
        workers.launch(nanoseconds, None, Some(Stage { pieces: cores, run: &piece }))?;
        Ok(())
    }

    /// Copies the rows that only this step has.
    pub fn copy_fresh(&self) {
        let rows = &self.plan.miss[ROW];
        if !self.plan.fresh {
            return;
        }
        for request in (0..self.plan.requests).filter(|&request| self.plan.missed(request)) {
            let first = self.plan.cu_q[request] as usize;
            for place in self.plan.places(request).filter(|&place| rows[place] < 0) {
                for layer in self.layers.iter() {
                    self.copy_fresh_row(layer, place, first + !rows[place] as usize);
                }
            }
        }
    }

    /// Copies the fresh row of a token to the slot of a miss in one layer.
    fn copy_fresh_row(&self, layer: Layer<'_>, place: usize, token: usize) {
        let segments = self.resources.pool.format().as_slice().iter();
        for (i, (segment, rows)) in segments.zip(layer.fresh.unwrap_or(&[])).enumerate() {
            // `check::layers` has checked that the slice holds a row of every token.
            let from = &rows[token * segment.stride..][..segment.bytes];
            // SAFETY: the slot is one of the buffer, which has room for the segment and which no input
            // overlaps.
            unsafe {
                let to = self.slot(layer.number, place, i);
                core::ptr::copy_nonoverlapping(from.as_ptr(), to, segment.bytes);
            }
        }
    }

    /// Returns the request of a miss.
    fn request_of(&self, place: usize) -> usize {
        let token = (place / self.plan.k) as i32;
        self.plan.cu_q[..=self.plan.requests].partition_point(|&at| at <= token) - 1
    }

    /// Returns the address of a segment of the slot of a miss in one layer.
    ///
    /// # Panics
    /// If the plan names a state that does not exist, which [`Self::new`] has refused.
    fn slot(&self, layer: usize, place: usize, segment: usize) -> *mut u8 {
        let (state, slot) = (self.plan.state[self.request_of(place)], self.plan.miss[SLOT][place]);
        let view = self.resources.buffer.view(state as usize, layer, segment);
        view.unwrap_or_else(|error| panic!("{error}")).ptr(slot as usize)
    }

    /// Keeps the first error.
    pub fn fail(&self, error: Error) {
        // A later error tells no more.
        let _ = self.failed.set(error);
    }

    /// Returns the first error.
    pub fn result(self) -> Result<()> {
        self.failed.into_inner().map_or(Ok(()), Err)
    }
}
