//! A step through the C ABI on "cpu" allocates nothing. The file holds one test, so that no other test
//! allocates in this process while it counts.

use avsg_capi_testkit::*;
use avsg_testkit::allocations;

#[test]
fn a_step_through_c_allocates_nothing() {
    allocations::check();
    let handles = Handles::on_cpu();
    for step in 0..500 {
        let owned = Arrays::new(step);
        let mut status = None;
        let calls = allocations::calls(|| status = Some(handles.step(&owned, 0)));
        ok(status.unwrap());
        assert_eq!(calls, 0, "allocator calls of step {step}");
    }
    handles.destroy();
}
