//! A step through the C ABI on "cpu", with lists of layers as well, allocates nothing.

use std::ptr::null_mut;

use avsg_capi::{avsg_engine_append, avsg_engine_transfer};
use avsg_capi_testkit::*;
use avsg_testkit::allocations;
use avsg_testkit::alone;

#[test]
fn a_step_through_c_allocates_nothing() {
    let _turn = alone::turn();
    allocations::check();
    let handles = Handles::on_cpu();
    for step in 0..500 {
        let owned = Arrays::new(step);
        let (batch, of_layer) = (owned.batch(), owned.fresh());
        let (layers, fresh, none) = ([0, 1], [of_layer; 2], null_mut());
        let (mut stepped, mut moved, mut appended) = (None, None, None);
        let Handles { engine, plan, .. } = handles;
        let calls = allocations::calls(|| {
            stepped = Some(handles.step(&owned, 0));
            let (layers, fresh) = (layers.as_ptr(), fresh.as_ptr());
            // SAFETY: the arrays have two elements, and `owned` owns the batch and the fresh rows.
            unsafe {
                moved = Some(avsg_engine_transfer(engine, plan, layers, 2, fresh, none));
                appended = Some(avsg_engine_append(engine, &batch, layers, 2, fresh, none));
            }
        });
        [stepped, moved, appended].into_iter().for_each(|status| ok(status.unwrap()));
        assert_eq!(calls, 0, "allocator calls of step {step}");
    }
    handles.destroy();
}
