//! Transfers that are under way during other calls, and what ends them.

use std::ffi::c_void;
use std::ptr::null_mut;

use avsg_capi::avsg_status::{AVSG_INVALID, AVSG_LOST_ROWS, AVSG_OK};
use avsg_capi::*;
use avsg_capi_testkit::*;

use super::random_caller::RandomCaller;
use super::shared_handles::Kind;

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

    /// Begins a transfer of a new plan and gives the plan up, or, where nothing is verified, leaves it under way.
    pub(super) fn begin(&mut self) {
        let engine = self.handle(Kind::Engine);
        let (model, plan) = (self.engine_model(engine), self.plan_of(engine));
        let (model, layer) = (model.as_deref(), self.below(2));
        let mut owned = self.batch(model, model.map_or(2, |model| model.tokens));
        owned.indexer = model.map_or(0, |model| model.indexer(layer));
        let rows = Self::fresh_rows(model, &owned, layer);
        let (batch, fresh) = (self.c_batch(&mut owned), self.fresh(&rows));
        // SAFETY: `owned` and `rows` own the arrays, each length is at most the true one or too large for any
        // memory, and handles are looked up.
        let (planned, begun) = unsafe {
            let planned = self.record(avsg_engine_plan(engine, &batch, plan, null_mut()));
            let begun = avsg_engine_begin(engine, plan, &layer, 1, &fresh, null_mut());
            (planned, self.record(begun))
        };
        let exact = model.is_some() && self.exact();
        assert!(!exact || planned && begun, "a begin without a mistake: {}", last_error());
        let way = self.below(if self.verify { 4 } else { 6 });
        let status = match way {
            0 => avsg_engine_wait(engine, plan),
            1 => avsg_engine_discard(engine, plan),
            2 => self.destroy(Kind::Plan, plan.addr()),
            // SAFETY: as above.
            3 => unsafe { avsg_engine_plan(engine, &batch, plan, null_mut()) },
            // SAFETY: as above.
            4 => unsafe { avsg_engine_test(engine, self.handle(Kind::Plan), &mut 0) },
            _ => avsg_engine_wait(engine, self.handle(Kind::Plan)),
        };
        self.record(status);
        if self.verify && status != AVSG_OK {
            // After a mistake the plan may hold an older batch, whose transfer a refused call leaves under way.
            avsg_engine_wait(engine, plan);
        }
        let lost = way == 0 && status == AVSG_LOST_ROWS;
        assert!(!exact || lost || status == AVSG_OK, "the end of a transfer: {}", last_error());
        // Layers lack the plan, or rows of it.
        self.epoch += 1;
    }
}
