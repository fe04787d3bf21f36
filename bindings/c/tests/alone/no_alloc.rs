//! A step through the C ABI on "cpu", with lists of layers as well, allocates nothing.

use std::ptr::null_mut;

use avsg_capi::avsg_status::AVSG_INVALID;
use avsg_capi::{
    avsg_engine_append, avsg_engine_begin, avsg_engine_test, avsg_engine_transfer, avsg_engine_wait,
};
use avsg_capi_testkit::*;
use avsg_testkit::{allocations, alone};

#[test]
fn a_step_through_c_allocates_nothing() {
    let _turn = alone::turn();
    allocations::check();
    let handles = Handles::on_cpu();
    for step in 0..500 {
        let owned = Arrays::new(step);
        let (batch, of_layer) = (owned.batch(), owned.fresh());
        let (layers, fresh, none) = ([0, 1], [of_layer; 2], null_mut());
        let (engine, plan, mut statuses) = (handles.engine, handles.plan, [AVSG_INVALID; 6]);
        let calls = allocations::calls(|| {
            let (layers, fresh) = (layers.as_ptr(), fresh.as_ptr());
            // SAFETY: the arrays have two elements, and `owned` owns the batch and the fresh rows.
            statuses = unsafe {
                [
                    handles.step(&owned, 0),
                    avsg_engine_transfer(engine, plan, layers, 2, fresh, none),
                    avsg_engine_begin(engine, plan, layers, 2, fresh, none),
                    avsg_engine_test(engine, plan, &mut 0),
                    avsg_engine_wait(engine, plan),
                    avsg_engine_append(engine, &batch, layers, 2, fresh, none),
                ]
            };
        });
        statuses.into_iter().for_each(ok);
        assert_eq!(calls, 0, "allocator calls of step {step}");
    }
    handles.destroy();
}
