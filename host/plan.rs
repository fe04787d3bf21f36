//! A plan: what Stage One found for a batch, kept so that several layers can transfer by it.
//!
//! The caller allocates it once; planning into it allocates nothing. It owns the outputs: slots,
//! valid counts, status, and the compact miss lists with their host rows already translated, so a
//! layer that shares the indexer looks nothing up.

use std::sync::Arc;

use avsg_device::request::record;

use crate::batch::Batch;
use crate::queued::{DevicePlan, QueuedBatch};
use crate::{Error, Result, memory};

/// The misses of one request, in token order. All slices have one length.
#[derive(Clone, Copy, Debug)]
pub struct Misses<'a> {
    /// token · K + lane, ascending.
    pub position: &'a [i32],
    /// Token ids.
    pub id: &'a [i32],
    /// Slots that they got.
    pub slot: &'a [i32],
    /// Host rows; -1 - n is fresh row n of the request.
    pub row: &'a [i32],
}

/// All arrays of a plan, as long as the largest batch that it holds.
#[derive(Clone, Copy, Debug)]
pub struct PlanArrays<'a> {
    /// Elements from row to row of `slot` and the miss lists: K.
    pub k: usize,
    /// The slot of each id, row by row; -1 for padding.
    pub slot: &'a [i32],
    /// Valid ids of each row.
    pub valid: &'a [i32],
    /// First row of each request, and the number of rows.
    pub cu_q: &'a [i32],
    /// Records of [`record::WORDS`] words, request by request.
    pub record: &'a [i32],
    /// Miss lists; a request's begins at its first row * K.
    pub miss: Misses<'a>,
}

/// A preallocated plan.
#[derive(Debug)]
pub struct Plan {
    pub(crate) k: usize,
    pub(crate) max_rows: usize,
    pub(crate) max_requests: usize,
    /// Number of requests; 0 before the first plan.
    pub(crate) requests: usize,
    /// First row of each request, and the number of rows.
    pub(crate) cu_q: Vec<i32>,
    pub(crate) state: Vec<i32>,
    pub(crate) slot: Vec<i32>,
    pub(crate) valid: Vec<i32>,
    pub(crate) record: Vec<i32>,
    pub(crate) miss: [Vec<i32>; 4],
    /// Misses of all requests.
    pub(crate) misses: usize,
    /// Whether some miss is a fresh row.
    pub(crate) fresh: bool,
    /// Which engine it belongs to: a plan names slots of that engine's tables.
    pub(crate) engine: u64,
    /// Its number among the plans of that engine, from 1.
    pub(crate) number: u64,
    /// For each request, the number of the plan whose rows a layer must hold before it gets this one's;
    /// 0: the state starts cold.
    pub(crate) before: Vec<u64>,
    /// Lives as long as the plan: a device keeps what it made for a plan until then.
    pub(crate) alive: Arc<()>,
    /// Where its outputs lie on a device, and the device's count of failures when it was planned.
    pub(crate) device: Option<DevicePlan>,
    pub(crate) epoch: u64,
    /// The batch in device memory that a caller's stream plans into those outputs.
    pub(crate) queued: Option<QueuedBatch>,
}

impl Plan {
    pub(crate) fn with_capacity(
        engine: u64,
        k: usize,
        max_rows: usize,
        max_requests: usize,
    ) -> Result<Self> {
        for (what, n) in [("plan rows", max_rows), ("plan requests", max_requests)] {
            if n == 0 || n > 1 << 20 {
                let limit = "it must be 1..=1048576";
                return Err(Error::invalid(what, n, limit, "size it for your largest batch"));
            }
        }
        let words = max_rows * k;
        // Slots and the four columns of the miss list.
        memory::check("plan", words.saturating_mul(5 * size_of::<i32>()))?;
        Ok(Self {
            k,
            max_rows,
            max_requests,
            requests: 0,
            cu_q: vec![0; max_requests + 1],
            state: vec![-1; max_requests],
            slot: vec![-1; words],
            valid: vec![0; max_rows],
            record: vec![0; max_requests * record::WORDS],
            miss: [(); 4].map(|()| vec![0; words]),
            misses: 0,
            fresh: false,
            engine,
            number: 0,
            before: vec![0; max_requests],
            alive: Arc::new(()),
            device: None,
            epoch: 0,
            queued: None,
        })
    }

    /// Takes over a checked batch's shape.
    pub(crate) fn begin(&mut self, batch: &Batch<'_>) {
        self.requests = batch.state.len();
        self.cu_q[..=self.requests].copy_from_slice(batch.cu_q);
        self.state[..self.requests].copy_from_slice(batch.state);
        self.record[..self.requests * record::WORDS].fill(0);
        (self.misses, self.fresh, self.queued) = (0, false, None);
    }

    /// After a failure: a plan of nothing.
    pub(crate) fn forget(&mut self) {
        (self.requests, self.misses, self.fresh, self.queued) = (0, 0, false, None);
        self.number = 0;
    }

    /// Notes what only the finished miss lists tell.
    pub(crate) fn finish(&mut self) {
        self.misses = (0..self.requests).map(|r| self.misses(r).id.len()).sum();
        self.fresh = (0..self.requests).any(|r| self.misses(r).row.iter().any(|&row| row < 0));
    }

    /// Whether a request missed a row: otherwise its transfer changes nothing.
    pub(crate) fn missed(&self, request: usize) -> bool {
        self.records(request)[record::TOTAL as usize] > 0
    }

    /// Which of its engine's plans the last batch was, from 1: errors name plans by it. 0 if there
    /// is none, and for what a stream plans.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether the last batch was planned in a caller's stream. Then its results are in
    /// [`Self::device_arrays`], and everything else here is empty.
    pub fn is_queued(&self) -> bool {
        self.queued.is_some()
    }

    /// Where its outputs lie on a device, for its whole life; none on the CPU device.
    pub fn device_arrays(&self) -> Option<DevicePlan> {
        self.device
    }

    /// Its arrays in host memory, which stay where they are for its whole life.
    pub fn arrays(&self) -> PlanArrays<'_> {
        let [position, id, slot, row] = &self.miss;
        PlanArrays {
            k: self.k,
            slot: &self.slot,
            valid: &self.valid,
            cu_q: &self.cu_q,
            record: &self.record,
            miss: Misses { position, id, slot, row },
        }
    }

    /// Requests of the planned batch.
    pub fn requests(&self) -> usize {
        self.requests
    }

    /// Rows (tokens) of the planned batch.
    pub fn rows(&self) -> usize {
        self.cu_q[self.requests] as usize
    }

    /// The slot of each selected id of a row, K of them; -1 for padding.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn slots(&self, row: usize) -> &[i32] {
        &self.slot[..self.rows() * self.k][row * self.k..][..self.k]
    }

    /// How many ids of each row are valid.
    pub fn valid(&self) -> &[i32] {
        &self.valid[..self.rows()]
    }

    /// A request's status bits, [`avsg_device::request::status`]; 0 if nothing was wrong.
    ///
    /// # Panics
    /// If there is no such request.
    pub fn status(&self, request: usize) -> i32 {
        self.records(request)[record::STATUS as usize]
    }

    /// Misses of one token of a request.
    ///
    /// # Panics
    /// If there is no such request or token.
    pub fn token_misses(&self, request: usize, token: usize) -> usize {
        let tokens = self.cu_q[request + 1] - self.cu_q[request];
        assert!((token as i32) < tokens, "token {token} of {tokens}");
        self.records(request)[record::MISSES as usize + token] as usize
    }

    /// A request's misses.
    ///
    /// # Panics
    /// If there is no such request.
    pub fn misses(&self, request: usize) -> Misses<'_> {
        let n = self.records(request)[record::TOTAL as usize] as usize;
        let at = self.cu_q[request] as usize * self.k;
        let [position, id, slot, row] = &self.miss;
        Misses {
            position: &position[at..at + n],
            id: &id[at..at + n],
            slot: &slot[at..at + n],
            row: &row[at..at + n],
        }
    }

    /// Misses of all requests: the rows that one transfer copies.
    pub fn total_misses(&self) -> usize {
        self.misses
    }

    fn records(&self, request: usize) -> &[i32] {
        assert!(request < self.requests, "request {request} of {}", self.requests);
        &self.record[request * record::WORDS..][..record::WORDS]
    }
}
