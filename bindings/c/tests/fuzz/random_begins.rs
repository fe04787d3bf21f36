//! Transfers that are under way during other calls.

use std::ffi::c_void;
use std::ptr::null_mut;

use avsg_capi::avsg_status::{AVSG_INVALID, AVSG_OK};
use avsg_capi::*;
use avsg_capi_testkit::*;

use super::random_caller::RandomCaller;

impl RandomCaller<'_> {
    /// Makes a transfer by a begin and a wait, and other calls between. Returns the status of the whole.
    ///
    /// # Safety
    /// As for `avsg_engine_transfer`, and for `avsg_engine_plan` about `batch`, which is that of the plan. `named` is whether it names a state.
    pub(super) unsafe fn begin_and_wait(
        &mut self,
        (engine, plan): (*mut avsg_engine, *mut avsg_plan),
        (layers, count, fresh): (*const usize, usize, *const avsg_fresh),
        stream: *mut c_void,
        (batch, named): (&avsg_batch, bool),
    ) -> avsg_status {
        // SAFETY: the arrays are those of a transfer (`# Safety`).
        let begun = unsafe { avsg_engine_begin(engine, plan, layers, count, fresh, stream) };
        if begun != AVSG_OK {
            return begun;
        }
        let exact = self.exact();
        for _ in 0..self.below(4) {
            // SAFETY: the arrays are those of the plan (`# Safety`), and handles are looked up.
            let (refused, status) = unsafe {
                match self.below(5) {
                    0 => (false, avsg_engine_test(engine, plan, &mut 0)),
                    1 => (true, avsg_engine_begin(engine, plan, layers, count, fresh, stream)),
                    2 => (false, avsg_engine_invalidate(engine, 0, ROWS, ROWS + 1)),
                    3 => (false, avsg_engine_get_stats(engine, &mut sized())),
                    _ => {
                        let mut other = null_mut();
                        let mut status = avsg_plan_create(engine, 64, 2, &mut other);
                        if status == AVSG_OK {
                            status = avsg_engine_plan(engine, batch, other, null_mut());
                            self.record(avsg_plan_destroy(other));
                        }
                        if named { (true, status) } else { (false, AVSG_OK) }
                    }
                }
            };
            self.record(status);
            if exact {
                let expected = if refused { AVSG_INVALID } else { AVSG_OK };
                assert_eq!(status, expected, "during a transfer: {}", last_error());
                assert!(!refused || last_error().contains("is under way"), "{}", last_error());
            }
        }
        avsg_engine_wait(engine, plan)
    }
}
