//! What a step found, as plain numbers, wherever it stood: in a plan, in a device's arrays, behind a C
//! pointer.

use std::ptr::without_provenance;

use avsg::ascend::acl::owned::Context;
use avsg::device::request::record;
use avsg::engine::DevicePlan;
use avsg::plan::Plan;

use crate::memory::words;

/// What it found for one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfRequest {
    /// Position, id, slot and host row of each miss.
    pub misses: [Vec<i32>; 4],
    /// Misses of each token.
    pub by_token: Vec<i32>,
    /// Status bits.
    pub status: i32,
}

/// What it found for a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Slots of a row: K.
    pub k: usize,
    /// Slots, row by row.
    pub slots: Vec<i32>,
    /// Valid ids of each row.
    pub valid: Vec<i32>,
    /// Request by request.
    pub requests: Vec<OfRequest>,
}

impl Found {
    /// What a plan says by its accessors. `cu_q` is the batch's.
    pub fn of(plan: &Plan, cu_q: &[i32]) -> Self {
        assert_eq!(plan.requests() + 1, cu_q.len(), "requests of the plan");
        let request = |(r, pair): (usize, &[i32])| {
            let misses = plan.misses(r);
            let lists = [misses.position, misses.id, misses.slot, misses.row];
            let tokens = (pair[1] - pair[0]) as usize;
            OfRequest {
                misses: lists.map(<[i32]>::to_vec),
                by_token: (0..tokens).map(|t| plan.token_misses(r, t) as i32).collect(),
                status: plan.status(r),
            }
        };
        Self {
            k: plan.arrays().k,
            slots: (0..plan.rows()).flat_map(|row| plan.slots(row)).copied().collect(),
            valid: plan.valid().to_vec(),
            requests: cu_q.windows(2).enumerate().map(request).collect(),
        }
    }

    /// What lies in a plan's arrays of K slots a row, in a device's memory or (without a context) in
    /// this process.
    ///
    /// # Safety
    /// The arrays are alive and as long as a plan's that holds the batch; nothing under way writes them.
    pub unsafe fn read(context: Option<&Context>, at: &DevicePlan, k: usize, cu_q: &[i32]) -> Self {
        let read = |address: u64, from: usize, n: usize| {
            let from = without_provenance::<i32>(address as usize + 4 * from);
            // SAFETY: the contract.
            unsafe { words(context, from, n) }
        };
        let rows = cu_q[cu_q.len() - 1] as usize;
        let request = |(r, pair): (usize, &[i32])| {
            let record = read(at.record, r * record::WORDS, record::WORDS);
            let (first, total) = (pair[0] as usize * k, record[record::TOTAL as usize] as usize);
            OfRequest {
                misses: at.miss.map(|list| read(list, first, total)),
                by_token: record[..(pair[1] - pair[0]) as usize].to_vec(),
                status: record[record::STATUS as usize],
            }
        };
        Self {
            k,
            slots: read(at.slot, 0, rows * k),
            valid: read(at.valid, 0, rows),
            requests: cu_q.windows(2).enumerate().map(request).collect(),
        }
    }

    /// The slots of one row.
    pub fn row(&self, row: usize) -> &[i32] {
        &self.slots[row * self.k..][..self.k]
    }

    /// All misses.
    pub fn total(&self) -> usize {
        self.requests.iter().map(|request| request.misses[1].len()).sum()
    }

    /// Appends slots, miss lists and status bits, to compare engines of different kinds by.
    pub fn note(&self, log: &mut Vec<i32>) {
        log.extend(&self.slots);
        for request in &self.requests {
            request.misses.iter().for_each(|list| log.extend(list));
            log.push(request.status);
        }
    }
}
