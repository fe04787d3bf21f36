//! The arrays of a plan, shared by the cores of one launch.

use avsg_device::request::record;

use crate::plan::Plan;

/// The arrays of a plan, which the cores of a launch share.
pub(super) struct Outputs {
    pub requests: usize,
    pub k: usize,
    pub cu_q: *const i32,
    pub state: *const i32,
    slot: *mut i32,
    valid: *mut i32,
    record: *mut i32,
    miss: [*mut i32; 4],
}

// SAFETY: the engine's methods hold `&mut Plan` for the length of a launch. Cores write only the
// parts of their requests, and read other parts after SyncAll.
unsafe impl Sync for Outputs {}

/// The output arrays of one request: slots, valid counts, miss list, record.
pub(super) type Parts<'a> = (&'a mut [i32], &'a mut [i32], [&'a mut [i32]; 4], &'a mut [i32]);

impl Outputs {
    /// Returns the arrays of a plan whose batch [`Plan::begin`] has set.
    pub fn of(plan: &mut Plan) -> Self {
        Self {
            requests: plan.requests,
            k: plan.k,
            cu_q: plan.cu_q.as_ptr(),
            state: plan.state.as_ptr(),
            slot: plan.slot.as_mut_ptr(),
            valid: plan.valid.as_mut_ptr(),
            record: plan.record.as_mut_ptr(),
            miss: plan.miss.each_mut().map(|m| m.as_mut_ptr()),
        }
    }

    /// Returns the parts of one request, to write.
    ///
    /// # Safety
    /// The rows `first..first + tokens` and the request are in the plan, and nothing else accesses
    /// them while the result is in use.
    pub unsafe fn parts(&self, request: usize, first: usize, tokens: usize, k: usize) -> Parts<'_> {
        let slice = |at: *mut i32, from: usize, n: usize| {
            // SAFETY: the ranges are in the plan and access is exclusive by the contract of
            // `parts`; the arrays are as long as the plan's rows and requests.
            unsafe { core::slice::from_raw_parts_mut(at.add(from), n) }
        };
        (
            slice(self.slot, first * k, tokens * k),
            slice(self.valid, first, tokens),
            self.miss.map(|m| slice(m, first * k, tokens * k)),
            slice(self.record, request * record::WORDS, record::WORDS),
        )
    }

    pub fn word(at: *const i32, i: usize) -> usize {
        // SAFETY: the callers, `misses` and `Transfer`, pass indices inside the plan's arrays.
        unsafe { *at.add(i) as usize }
    }

    /// Returns one column of a request's miss list, after SyncAll.
    pub fn misses(&self, request: usize, column: usize) -> &[i32] {
        let n = Self::word(self.record, request * record::WORDS + record::TOTAL as usize);
        let at = Self::word(self.cu_q, request) * self.k;
        // SAFETY: Stage One wrote `n` entries there, and no core writes them after SyncAll.
        unsafe { core::slice::from_raw_parts(self.miss[column].add(at), n) }
    }
}
