//! The results of a planned step as plain numbers, read from a [`Plan`], from a device's arrays, or
//! from the arrays of the C ABI.

use std::ptr::without_provenance;

use avsg::ascend::acl::Context;
use avsg::device::request::summary;
use avsg::engine::DevicePlan;
use avsg::plan::Plan;

use crate::memory::read_words;

/// The results for one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestResult {
    /// The miss list: position, id, slot and host row of each miss.
    pub misses: [Vec<i32>; 4],
    /// Number of misses of each token.
    pub token_misses: Vec<i32>,
    /// Status bits.
    pub status: i32,
}

/// The results for a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepResult {
    /// K, the number of slots per row.
    pub k: usize,
    /// Slots, one row after the other.
    pub slots: Vec<i32>,
    /// Number of valid ids of each row.
    pub valid: Vec<i32>,
    /// Results of each request.
    pub requests: Vec<RequestResult>,
}

impl StepResult {
    /// Reads a plan by its accessors. `cu_q` is that of the batch.
    pub fn from_plan(plan: &Plan, cu_q: &[i32]) -> Self {
        assert_eq!(plan.requests() + 1, cu_q.len(), "cu_q and the plan have the same requests");
        let request = |(r, pair): (usize, &[i32])| {
            let misses = plan.misses(r);
            RequestResult {
                misses: [misses.position, misses.id, misses.slot, misses.row].map(<[i32]>::to_vec),
                token_misses: plan.row_misses()[pair[0] as usize..pair[1] as usize].to_vec(),
                status: plan.status(r),
            }
        };
        Self {
            k: plan.arrays().k,
            slots: (0..plan.tokens()).flat_map(|row| plan.slots(row)).copied().collect(),
            valid: plan.valid().to_vec(),
            requests: cu_q.windows(2).enumerate().map(request).collect(),
        }
    }

    /// Reads the arrays of a plan with `k` slots per row, from a device's memory or, without a
    /// context, from this process.
    ///
    /// # Safety
    /// The arrays are valid and as long as those of a plan that has the capacity for the batch, and
    /// no work in progress writes them.
    pub unsafe fn from_arrays(
        context: Option<&Context>,
        at: &DevicePlan,
        k: usize,
        cu_q: &[i32],
    ) -> Self {
        let read = |address: u64, from: usize, n: usize| {
            let from = without_provenance::<i32>(address as usize + 4 * from);
            // SAFETY: the arrays are valid, nothing writes them (`# Safety`), and they have at
            // least `n` words from `from` on.
            unsafe { read_words(context, from, n) }
        };
        let rows = cu_q[cu_q.len() - 1] as usize;
        let request = |(r, pair): (usize, &[i32])| {
            let summary = read(at.summary, r * summary::WORDS, summary::WORDS);
            let (first, total) = (pair[0] as usize * k, summary[summary::TOTAL as usize] as usize);
            RequestResult {
                misses: at.miss.map(|list| read(list, first, total)),
                token_misses: summary::row_misses(&summary, (pair[1] - pair[0]) as usize).collect(),
                status: summary[summary::STATUS as usize],
            }
        };
        Self {
            k,
            slots: read(at.slot, 0, rows * k),
            valid: read(at.valid, 0, rows),
            requests: cu_q.windows(2).enumerate().map(request).collect(),
        }
    }

    /// Returns the K slots of one row.
    pub fn row(&self, row: usize) -> &[i32] {
        &self.slots[row * self.k..][..self.k]
    }

    /// Returns the number of misses of the batch.
    pub fn miss_count(&self) -> usize {
        self.requests.iter().map(|request| request.misses[1].len()).sum()
    }
}
