//! The arrays of a plan, shared by the cores of one launch.

use avsg_device::request::record;

use crate::plan::Plan;
use crate::system::address::Address;

/// The arrays of a plan, which it borrows for the length of a launch. Cores write only the parts of
/// their requests, and read other parts after SyncAll.
pub(super) struct Outputs<'a> {
    pub requests: usize,
    pub k: usize,
    pub cu_q: &'a [i32],
    pub state: &'a [i32],
    slot: Address<i32>,
    valid: Address<i32>,
    record: Address<i32>,
    miss: [Address<i32>; 4],
}

/// The output arrays of one request: slots, valid counts, miss list, record.
pub(super) type Parts<'a> = (&'a mut [i32], &'a mut [i32], [&'a mut [i32]; 4], &'a mut [i32]);

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
            record: Address(plan.record.as_mut_ptr()),
            miss: plan.miss.each_mut().map(|column| Address(column.as_mut_ptr())),
        }
    }

    /// Returns the parts of one request, to write.
    ///
    /// # Safety
    /// The rows `first..first + tokens` and the request are in the plan, and nothing else accesses
    /// them while the result is in use.
    pub unsafe fn parts(&self, request: usize, first: usize, tokens: usize) -> Parts<'_> {
        let k = self.k;
        let slice = |at: Address<i32>, from: usize, n: usize| {
            // SAFETY: the rows and the request are in the plan, whose arrays are as long, and nothing else
            // accesses them (`# Safety` of `parts`).
            unsafe { core::slice::from_raw_parts_mut(at.0.add(from), n) }
        };
        (
            slice(self.slot, first * k, tokens * k),
            slice(self.valid, first, tokens),
            self.miss.map(|m| slice(m, first * k, tokens * k)),
            slice(self.record, request * record::WORDS, record::WORDS),
        )
    }

    /// Returns one column of a request's miss list, after SyncAll.
    pub fn misses(&self, request: usize, column: usize) -> &[i32] {
        let total = request * record::WORDS + record::TOTAL as usize;
        let at = self.cu_q[request] as usize * self.k;
        // SAFETY: the plan has a record of each request. Stage One wrote as many entries as it tells,
        // and no core writes them after SyncAll.
        unsafe {
            let n = *self.record.0.add(total) as usize;
            core::slice::from_raw_parts(self.miss[column].0.add(at), n)
        }
    }
}
