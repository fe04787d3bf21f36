//! A plan: the results of Stage One for a batch, from which every layer is transferred.
//!
//! The caller allocates it once ([`Engine::new_plan`](crate::engine::Engine::new_plan)); planning
//! into it allocates nothing. It holds the slots, the valid counts, the status bits and the compact
//! miss lists. Miss lists already contain host rows, so a transfer translates no ids.

mod counters;
mod dropped;
mod failures;
mod miss_records;
mod outputs;

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use avsg_device::one_request::ROW;
use avsg_device::params::Params;
use avsg_device::request::summary;

use crate::call::{Batch, MAX_REQUESTS, named};
use crate::device_arrays::{DeviceCall, DevicePlan};
use crate::system::allocator::Allocator;
use crate::system::array::{Array, Integer};
use crate::system::available_memory;
use crate::{Result, ensure};

pub use counters::{PlanCounters, SharedCounters};
pub use failures::Failure;
pub use outputs::{Misses, PlanArrays};

pub(crate) use dropped::Dropped;
pub(crate) use miss_records::MissRecords;

use dropped::Place;

/// A preallocated plan, for batches up to the size that it was made for.
///
/// A batch that no layer has the rows of is discarded ([`Engine::discard`](crate::engine::Engine::discard))
/// when the next one is planned into the plan, and in the engine's next call after the plan was dropped, which first
/// waits for a transfer that is under way. The drop itself never blocks; a batch that a newer plan of a state needs is kept until that one is gone, too.
#[derive(Debug, Default)]
pub struct Plan {
    pub(crate) k: usize,
    pub(crate) max_tokens: usize,
    pub(crate) max_requests: usize,
    /// The indexer of the planned batch.
    pub(crate) indexer: usize,
    /// Number of requests in the planned batch; 0 if there is none.
    pub(crate) requests: usize,
    pub(crate) cu_q: Array<i32>,
    pub(crate) state: Array<i32>,
    pub(crate) slot: Array<i32>,
    pub(crate) valid: Array<i32>,
    /// The misses of each token, which [`Self::finish`] takes from the summaries.
    row_misses: Array<i32>,
    pub(crate) summary: Array<i32>,
    pub(crate) miss: [Array<i32>; 4],
    /// Number of misses of all requests.
    pub(crate) misses: usize,
    /// Whether some miss is a fresh row.
    pub(crate) fresh: bool,
    /// The [`Resources::id`](crate::resources::Resources::id) of the engine whose slots it
    /// contains.
    pub(crate) engine: u64,
    /// Number of the last batch among the plans of its engine, from 1; 0 if there is none.
    pub(crate) number: u64,
    /// For each request, the plans of its state before this one.
    pub(crate) before: Array<Before>,
    /// For each request that transfers leave out, the layer and the row that are not whole; for others -1.
    failed_layer: Array<i64>,
    failed_row: Array<i64>,
    /// 1 for a request that the last transfer found.
    failed_new: Array<i32>,
    /// Whether a layer holds the plan.
    pub(crate) held: bool,
    /// The place of its transfer that is under way among those of its engine.
    pub(crate) under_way: Option<usize>,
    /// The layers of that transfer, with room for all of the pool.
    pub(crate) layers: Vec<usize>,
    /// The plan's counters, which it has until it leaves. A device releases a plan's arrays when nobody has them.
    pub(crate) counters: Option<Arc<SharedCounters>>,
    /// Where the plan goes if it is dropped before a layer holds it.
    place: Option<Place<Self>>,
    /// Device addresses of its outputs, and the device's epoch when it was planned.
    pub(crate) device: Option<DevicePlan>,
    pub(crate) epoch: u64,
    /// A transfer to no layer of the batch that was planned in a caller's stream, if the last one was.
    pub(crate) queued: Option<DeviceCall<'static>>,
    /// The records of its misses, if the pool is a file.
    pub(crate) records: Option<Box<MissRecords>>,
}

/// The numbers of the plans of a state before one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    /// The plan whose rows a layer must hold before this one is transferred to it; 0 if the state starts cold.
    pub required: u64,
    /// The state's last plan before this one; 0 if there is none.
    pub previous: u64,
    /// The first plan since the state was cold, which may be this one.
    pub first: u64,
}

// SAFETY: three integers of one size have neither padding nor invalid values.
unsafe impl Integer for Before {}

impl Plan {
    /// Returns the bytes of host memory of a plan for batches of at most `max_tokens` tokens and
    /// `max_requests` requests. On an Ascend device a plan also takes what
    /// [`plan_bytes`](crate::ascend::sizes::plan_bytes) returns.
    ///
    /// # Errors
    /// As for [`Engine::new_plan`](crate::engine::Engine::new_plan), but for memory.
    pub fn bytes_needed(params: &Params, max_tokens: usize, max_requests: usize) -> Result<usize> {
        for (what, n) in [("max_tokens", max_tokens), ("max_requests", max_requests)] {
            ensure!(n != 0 && n <= MAX_REQUESTS, what is n, but "it must be 1..={MAX_REQUESTS}";
                "size it for your largest batch");
        }
        // `slot` and the four columns of the miss list, `valid` and `row_misses`.
        let row = 5 * params.k as usize + 2;
        // `state`, `cu_q` and `summary`, and what is kept of the order and of failures.
        let request = (2 + summary::WORDS) * size_of::<i32>()
            + size_of::<Before>()
            + 2 * size_of::<i64>()
            + size_of::<i32>();
        // This cannot overflow, because K is below 2^32. The last word is the end of `cu_q`.
        Ok(max_tokens * row * size_of::<i32>() + max_requests * request + size_of::<i32>())
    }

    pub(crate) fn with_capacity(
        engine: u64,
        params: &Params,
        max_tokens: usize,
        max_requests: usize,
        (allocator, dropped): (Option<&Arc<dyn Allocator>>, &Dropped<Self>),
    ) -> Result<Self> {
        let bytes = Self::bytes_needed(params, max_tokens, max_requests)?;
        if allocator.is_none() {
            available_memory::check("plan", bytes)?;
        }
        let k = params.k as usize;
        let words = max_tokens * k;
        let filled = |len, value| Array::filled("plan", len, value, allocator);
        // A new plan holds no batch, and its device adds what the device needs.
        let mut plan = Self::default();
        (plan.engine, plan.k, plan.max_tokens, plan.max_requests) =
            (engine, k, max_tokens, max_requests);
        plan.cu_q = filled(max_requests + 1, 0)?;
        plan.state = filled(max_requests, -1)?;
        plan.slot = filled(words, -1)?;
        plan.valid = filled(max_tokens, 0)?;
        plan.row_misses = filled(max_tokens, 0)?;
        plan.summary = filled(max_requests * summary::WORDS, 0)?;
        plan.miss = [filled(words, 0)?, filled(words, 0)?, filled(words, 0)?, filled(words, 0)?];
        plan.before = Array::filled("plan", max_requests, Before::default(), allocator)?;
        plan.failed_layer = Array::filled("plan", max_requests, -1, allocator)?;
        plan.failed_row = Array::filled("plan", max_requests, -1, allocator)?;
        plan.failed_new = filled(max_requests, 0)?;
        plan.counters = Some(Arc::default());
        plan.place = Some(dropped.place()?);
        Ok(plan)
    }

    /// Copies the shape of a checked batch and clears the results.
    pub(crate) fn begin(&mut self, batch: &Batch<'_>) {
        self.clear(None);
        (self.requests, self.indexer) = (batch.state.len(), batch.indexer);
        self.cu_q[..=self.requests].copy_from_slice(batch.cu_q);
        self.state[..self.requests].copy_from_slice(batch.state);
        self.summary[..self.requests * summary::WORDS].fill(0);
    }

    /// Forgets the batch. `queued` is the transfer of one that a stream is going to plan.
    pub(crate) fn clear(&mut self, queued: Option<DeviceCall<'static>>) {
        self.forget_failures();
        self.records.iter_mut().for_each(|records| records.clear());
        (self.requests, self.misses, self.fresh) = (0, 0, false);
        (self.number, self.held, self.queued) = (0, false, queued);
        if let Some(counters) = &self.counters {
            counters.clear(queued.is_some());
        }
    }

    /// Gives a finished plan its number, after which other threads see its counters.
    pub(crate) fn set_number(&mut self, number: u64) {
        self.number = number;
        let [requests, tokens, misses] =
            [self.requests, self.tokens(), self.misses].map(|n| n as u64);
        let selected = self.valid().iter().map(|&n| n as u64).sum();
        let status = (0..self.requests).fold(0, |bits, request| bits | self.status(request));
        if let Some(counters) = &self.counters {
            counters.set(PlanCounters { number, requests, tokens, selected, misses, status });
        }
    }

    /// Returns whether the plan was made on the host and no layer holds it.
    pub(crate) fn unheld(&self) -> bool {
        self.number != 0 && !self.held
    }

    /// Returns the requests that name a state, as (request, state).
    pub(crate) fn named(&self) -> impl Iterator<Item = (usize, usize)> + Clone + '_ {
        named(&self.state[..self.requests])
    }

    /// Finds the records of the misses of all requests but those that are left out, if the pool is a file.
    /// Returns the stamp of the records that the plan holds, which it gives up until the transfer has ended.
    pub(crate) fn sort_records(&mut self) -> Option<u64> {
        let mut records = self.records.take()?;
        let served = (0..self.requests).filter(|&request| !self.is_left_out(request));
        records.sort(served.flat_map(|request| self.places(request)), &self.miss[ROW]);
        let held = records.held.take();
        self.records = Some(records);
        held
    }

    /// Counts the misses, of each token and of all, and notes whether any is a fresh row, once Stage One is
    /// done.
    pub(crate) fn finish(&mut self) {
        for request in 0..self.requests {
            let (first, end) = (self.cu_q[request] as usize, self.cu_q[request + 1] as usize);
            let summary = &self.summary[request * summary::WORDS..];
            let misses = summary::row_misses(summary, end - first);
            self.row_misses[first..end].iter_mut().zip(misses).for_each(|(to, n)| *to = n);
        }
        self.misses = (0..self.requests).map(|r| self.misses(r).id.len()).sum();
        self.fresh = (0..self.requests).any(|r| self.misses(r).row.iter().any(|&row| row < 0));
    }

    /// Returns whether a request missed a row and is not left out. Otherwise its transfer copies nothing.
    pub(crate) fn missed(&self, request: usize) -> bool {
        !self.is_left_out(request) && self.request_summary(request)[summary::TOTAL as usize] > 0
    }

    /// Returns the counters of the last batch, which another thread may read during the engine's calls.
    pub fn counters(&self) -> Arc<SharedCounters> {
        self.counters.clone().unwrap_or_default()
    }

    /// Returns whether the last batch was planned in a caller's stream. Then the results are in
    /// [`Self::device_arrays`], and the plan has no requests in host memory.
    pub fn is_queued(&self) -> bool {
        self.queued.is_some()
    }

    /// Returns the device addresses of the outputs, which do not change until the plan is dropped;
    /// `None` on the CPU device.
    pub fn device_arrays(&self) -> Option<DevicePlan> {
        self.device
    }

    /// Returns the arrays in host memory, whose addresses do not change until the plan is dropped.
    pub fn arrays(&self) -> PlanArrays<'_> {
        let [position, id, slot, row] = &self.miss;
        PlanArrays {
            k: self.k,
            slot: &self.slot,
            valid: &self.valid,
            row_misses: &self.row_misses,
            cu_q: &self.cu_q,
            summary: &self.summary,
            failed_layer: &self.failed_layer,
            failed_row: &self.failed_row,
            failed_new: &self.failed_new,
            miss: Misses { position, id, slot, row },
        }
    }

    /// Returns the indexer of the planned batch, whose layers the plan can be transferred to.
    pub fn indexer(&self) -> usize {
        self.indexer
    }

    /// Returns the number of requests in the planned batch.
    pub fn requests(&self) -> usize {
        self.requests
    }

    /// Returns the number of tokens in the planned batch.
    pub fn tokens(&self) -> usize {
        self.cu_q[self.requests] as usize
    }

    /// Returns the slots of a token's ids, K of them; -1 for padding. With
    /// [`Config::slot_base`](crate::engine::Config::slot_base) they are indices among the slots of
    /// all states.
    ///
    /// # Panics
    /// If `token` is not below the number of tokens.
    pub fn slots(&self, token: usize) -> &[i32] {
        &self.slot[..self.tokens() * self.k][token * self.k..][..self.k]
    }

    /// Returns the number of valid ids of each token.
    pub fn valid(&self) -> &[i32] {
        &self.valid[..self.tokens()]
    }

    /// Returns the number of misses of each token.
    pub fn row_misses(&self) -> &[i32] {
        &self.row_misses[..self.tokens()]
    }

    /// Returns the status bits of a request ([`avsg_device::request::status`]); 0 if all its ids
    /// were accepted.
    ///
    /// # Panics
    /// If `request` is not below the number of requests.
    pub fn status(&self, request: usize) -> i32 {
        self.request_summary(request)[summary::STATUS as usize]
    }

    /// Returns the miss list of a request.
    ///
    /// # Panics
    /// If `request` is not below the number of requests.
    pub fn misses(&self, request: usize) -> Misses<'_> {
        let places = self.places(request);
        let [position, id, slot, row] = self.miss.each_ref().map(|column| &column[places.clone()]);
        Misses { position, id, slot, row }
    }

    /// Returns where the miss list of a request is in the columns.
    pub(crate) fn places(&self, request: usize) -> Range<usize> {
        let (at, total) = (self.cu_q[request] as usize * self.k, summary::TOTAL as usize);
        at..at + self.request_summary(request)[total] as usize
    }

    /// Returns the number of misses of all requests, which is the number of rows that one transfer
    /// copies.
    pub fn total_misses(&self) -> usize {
        self.misses
    }

    fn request_summary(&self, request: usize) -> &[i32] {
        assert!(request < self.requests, "request {request} of {}", self.requests);
        &self.summary[request * summary::WORDS..][..summary::WORDS]
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        let is_left = self.unheld() || self.under_way.is_some();
        if let Some(place) = self.place.take().filter(|_| is_left) {
            // A transfer that is under way uses them.
            if self.under_way.is_none() {
                self.records = None;
            }
            place.leave(mem::take(self));
        }
    }
}
