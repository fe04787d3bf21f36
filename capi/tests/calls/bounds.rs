//! Counts of a batch and of a list that do not fit are refused before their array is read.

use std::ptr::null_mut;

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::*;

/// More elements than the tests' arrays have, which would all be read without a fault only if a few GiB
/// behind them were mapped.
pub const FALSE_COUNT: usize = 1 << 28;

/// Returns a copy of values that ends with a page behind which nothing is mapped. It is never freed.
pub fn before_a_hole<T: Copy>(values: &[T]) -> *const T {
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
    let bytes = size_of_val(values);
    let len = bytes.next_multiple_of(4096);
    // SAFETY: the system chooses the address of the new mapping, whose last page loses its access
    // before anything has its address, and whose other pages have room for the values.
    unsafe {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let at = mmap_anonymous(null_mut(), len + 4096, access, flags).unwrap();
        mprotect(at.byte_add(len), 4096, MprotectFlags::empty()).unwrap();
        let copy = at.byte_add(len - bytes).cast::<T>();
        copy.copy_from_nonoverlapping(values.as_ptr(), values.len());
        copy
    }
}

#[test]
fn counts_that_do_not_fit_are_refused_before_their_array_is_read() {
    let handles = Handles::on_cpu();
    // The arrays of a batch agree in their false length.
    let owned = Arrays::new(0);
    let mut batch = owned.batch();
    for (array, values) in [
        (&mut batch.cu_q, &owned.cu_q),
        (&mut batch.state, &owned.state),
        (&mut batch.generation, &owned.generation),
        (&mut batch.stable_len, &owned.stable),
        (&mut batch.seq_len, &owned.seq),
    ] {
        *array = avsg_i32s { data: before_a_hole(values), len: FALSE_COUNT };
    }
    batch.cu_q.len += 1;
    let fresh = owned.fresh();
    // SAFETY: `owned` owns the other arrays, and those with a false length are refused.
    unsafe {
        let status = avsg_engine_plan(handles.engine, &batch, handles.plan, null_mut());
        // The arrays of this length reach into the plan or its engine, or are too many for the plan.
        expect_error(status, AVSG_INVALID, &[]);
        let status = avsg_engine_append(handles.engine, &batch, &0, 1, &fresh, null_mut());
        expect_error(status, AVSG_INVALID, &["requests is 268435456", "0..=1048576"]);
        let (states, mut table, mut lengths) = (before_a_hole(&[0, 1]), [0; 2], [0; 2]);
        let (t, l) = (table.as_mut_ptr(), lengths.as_mut_ptr());
        let n = FALSE_COUNT;
        let status = avsg_engine_get_page_table(handles.engine, states, n, 0, t, 1, l);
        expect_error(status, AVSG_INVALID, &["requests is 268435456", "0..=1048576"]);
    }
    handles.destroy();
}
