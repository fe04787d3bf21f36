//! Misuse through C, on "cpu" and "ascend-sim": each call returns a status with a message and
//! changes nothing, so that the next step is exact.

mod configurations;
mod misuse;

use std::ffi::{CStr, c_char};

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::*;

/// Asserts that a valid step succeeds and is exact.
fn expect_step_works(handles: &Handles, step: i32) {
    let owned = Arrays::new(step);
    ok(handles.step(&owned, 0));
    assert_eq!(handles.expect_exact(&owned, 0), 32);
}

#[test]
fn versions_devices_and_status_names_are_fixed() {
    assert_eq!(avsg_abi_version(), AVSG_ABI_VERSION);
    let text = |at: *const c_char| {
        // SAFETY: these functions return NUL-terminated strings that are valid for ever.
        unsafe { CStr::from_ptr(at) }.to_str().unwrap()
    };
    assert_eq!(text(avsg_version()), env!("CARGO_PKG_VERSION"));
    assert_eq!(text(avsg_devices()), "cpu ascend ascend-sim");
    // A changed number would break programs that were compiled with an older header.
    let names = "OK INVALID NULL HANDLE SIZE BUSY UNSUPPORTED NO_MEMORY OS INTERNAL DEVICE FORKED \
                 LOST_ROWS";
    let names: Vec<&str> = names.split_whitespace().collect();
    for (code, name) in names.iter().enumerate() {
        assert_eq!(text(avsg_status_name(code as i32)), format!("AVSG_{name}"));
    }
    for code in [-1, names.len() as i32, i32::MIN, i32::MAX] {
        assert_eq!(text(avsg_status_name(code)), "unknown status");
    }
}

#[test]
fn tables_of_pages_are_written_or_left_as_they_are() {
    each_device(|device| {
        let handles = Handles::on(device);
        // A page of this size divides a state into four.
        let page = config_on(device).slots as usize / 4;
        let mut arrays = sized::<avsg_plan_arrays>();
        // SAFETY: the out-pointers are local variables, and the arrays have the stated lengths.
        unsafe {
            let status = avsg_plan_get_arrays(handles.plan, 1, &mut arrays);
            expect_error(status, AVSG_INVALID, &["memory is 1", "AVSG_MEMORY_DEVICE (2)"]);
            let (mut table, mut lengths) = ([9; 15], [9; 3]);
            let mut view = |states: [i32; 3], page, stride| {
                let (t, l) = (table.as_mut_ptr(), lengths.as_mut_ptr());
                avsg_engine_get_page_table(handles.engine, states.as_ptr(), 3, page, t, stride, l)
            };
            let states = [1, -1, 0];
            expect_error(view(states, 48, 5), AVSG_INVALID, &["page is 48", "divide the"]);
            let text = ["capacity is 3", "there are 4 pages"];
            expect_error(view(states, page, 3), AVSG_INVALID, &text);
            expect_error(view([0, 2, 0], page, 4), AVSG_INVALID, &["state is", "there are 2"]);
            ok(view(states, page, 5));
            assert_eq!(table, [4, 5, 6, 7, 9, -1, -1, -1, -1, 9, 0, 1, 2, 3, 9]);
            assert_eq!(lengths, [4 * page as i32, 0, 4 * page as i32]);
        }
        handles.destroy();
    });
}
