//! What the workers of the CPU device share: the tables, the working columns, the chosen machine and copier,
//! and the arrays of the plan of a launch.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use avsg_device::memory::{learn, table_words, words_before_links};
use avsg_device::one_request::{Compiled, StageOne, work_words};
use avsg_device::params::{Lifetime, NO_STABLE_LEN, Params};
use avsg_device::request::summary;

use super::cold::read_if_cold;
use crate::call::{Batch, named};
use crate::copy::Copier;
use crate::plan::Plan;
use crate::resources::Resources;
use crate::system::address::Address;
use crate::system::mapping::Mapping;

/// Words in a 64-byte cache line; columns of different workers share none.
const LINE_WORDS: usize = 16;

pub(super) fn worker_words(params: &Params) -> usize {
    work_words(params).next_multiple_of(LINE_WORDS)
}

/// The memory and the choices that the workers share.
pub(super) struct Cores {
    pub machine: &'static str,
    pub kernels: &'static dyn Compiled,
    pub copier: Copier,
    pub tables: Mapping,
    pub work: Mapping,
    /// For each state, the worker, counted from 1, that ran Stage One of the running step and has yet
    /// to learn from it; 0 if there is none.
    pub learner: Vec<AtomicUsize>,
}

impl Cores {
    /// Returns the words of one table.
    ///
    /// # Safety
    /// `table` is below the number of tables, and nothing else accesses this table while the result
    /// is in use.
    #[expect(clippy::mut_from_ref, reason = "the contract is exclusive use of this one table")]
    pub unsafe fn table(&self, params: &Params, table: usize) -> &mut [i32] {
        let n = table_words(params);
        let at = self.tables.ptr().cast::<i32>();
        // SAFETY: the memory holds all tables, is zeroed and begins at a cache line. `table` is in range,
        // and nothing else accesses it while the result is in use (`# Safety`).
        unsafe { core::slice::from_raw_parts_mut(at.add(table * n), n) }
    }

    /// Runs Stage One of one request on one worker. If the launch copies rows, the worker learns from it
    /// in [`Self::learn`], otherwise at once.
    pub fn plan_request(
        &self,
        resources: &Resources,
        (batch, copies): (&Batch<'_>, bool),
        out: &Outputs<'_>,
        request: usize,
        worker: usize,
    ) {
        let words = worker_words(&resources.config.params);
        let at = self.work.ptr().cast::<i32>();
        // SAFETY: the memory holds `words` words per worker, is zeroed and aligned, and only this
        // worker uses the words of index `worker`.
        let work = unsafe { core::slice::from_raw_parts_mut(at.add(worker * words), words) };
        let params = &resources.config.params;
        let k = params.k as usize;
        let first = batch.cu_q[request] as usize;
        let tokens = batch.cu_q[request + 1] as usize - first;
        let part = |array: Address<i32>, from: usize, n: usize| {
            // SAFETY: the engine checked that `cu_q` ascends and that the plan is large enough, so the
            // parts of requests are disjoint and in range; each request is taken by one worker.
            unsafe { core::slice::from_raw_parts_mut(array.0.add(from), n) }
        };
        let [slot, a, b, c, d] = [out.slot, out.miss[0], out.miss[1], out.miss[2], out.miss[3]]
            .map(|array| part(array, first * out.k, tokens * out.k));
        let valid = part(out.valid, first, tokens);
        if batch.k < k {
            slot.fill(-1);
        }
        let Ok(state) = usize::try_from(batch.state[request]) else {
            slot.fill(-1);
            valid.fill(0);
            return;
        };
        let stable = batch.stable_len[request];
        let blocks = if params.page == 0 {
            &[]
        } else {
            &batch.block_table[request * batch.block_stride..][..batch.block_stride]
        };
        let table = resources.config.table(batch.indexer, state);
        // SAFETY: the engine checked that the indexer and `state` are in range, and that `state` is
        // named once in the batch.
        let table = unsafe { self.table(params, table) };
        read_if_cold(table, words_before_links(params));
        self.kernels.stage_one(StageOne {
            params,
            state: table,
            work,
            tokens,
            k: batch.k,
            generation: batch.generation[request],
            stable: if stable < 0 { NO_STABLE_LEN } else { stable },
            limit: batch.seq_len[request],
            rows: resources.pool_units(),
            // The last requests of a batch may have no tokens and start after the last row.
            ids: batch.ids.get(first * batch.ids_stride..).unwrap_or(&[]),
            ids_stride: batch.ids_stride,
            blocks,
            slot: &mut *slot,
            valid,
            miss: [a, b, c, d],
            summary: part(out.summary, request * summary::WORDS, summary::WORDS),
        });
        resources.globalize(state, slot);
        if params.lifetime == Lifetime::Learned {
            self.learner[state].store(worker + 1, Ordering::Relaxed);
            if !copies {
                self.learn(resources, batch, request..request + 1, worker);
            }
        }
    }

    /// Learns from those of a batch's `requests` whose Stage One this worker ran, once from each: their
    /// tables are in its CPU's cache.
    pub fn learn(
        &self,
        resources: &Resources,
        batch: &Batch<'_>,
        requests: Range<usize>,
        worker: usize,
    ) {
        let params = &resources.config.params;
        for (_, state) in named(&batch.state[requests]) {
            // Other workers write other numbers, and this worker has written its own one itself.
            if self.learner[state].load(Ordering::Relaxed) == worker + 1 {
                self.learner[state].store(0, Ordering::Relaxed);
                let table = resources.config.table(batch.indexer, state);
                // SAFETY: the engine checked that the indexer and `state` are in range, and that
                // `state` is named once in the batch. This worker alone ran its Stage One, which has
                // ended.
                learn(params, unsafe { self.table(params, table) });
            }
        }
    }
}

/// The arrays of a plan, which it borrows for the length of a launch. Cores write only the parts of
/// their requests, and read other parts after SyncAll.
pub(super) struct Outputs<'a> {
    pub requests: usize,
    pub k: usize,
    pub cu_q: &'a [i32],
    pub state: &'a [i32],
    slot: Address<i32>,
    valid: Address<i32>,
    summary: Address<i32>,
    miss: [Address<i32>; 4],
}

impl<'a> Outputs<'a> {
    /// Returns the arrays of a plan whose batch [`Plan::begin`] has set.
    pub fn of(plan: &'a mut Plan) -> Self {
        Self {
            requests: plan.requests,
            k: plan.k,
            cu_q: &plan.cu_q,
            state: &plan.state,
            slot: Address(plan.slot.as_mut_ptr()),
            valid: Address(plan.valid.as_mut_ptr()),
            summary: Address(plan.summary.as_mut_ptr()),
            miss: plan.miss.each_mut().map(|column| Address(column.as_mut_ptr())),
        }
    }

    /// Returns one column of a request's miss list, after SyncAll.
    pub fn misses(&self, request: usize, column: usize) -> &[i32] {
        let total = request * summary::WORDS + summary::TOTAL as usize;
        let at = self.cu_q[request] as usize * self.k;
        // SAFETY: the plan has a summary of each request. Stage One wrote as many entries as it tells,
        // and no core writes them after SyncAll.
        unsafe {
            let n = *self.summary.0.add(total) as usize;
            core::slice::from_raw_parts(self.miss[column].0.add(at), n)
        }
    }
}
