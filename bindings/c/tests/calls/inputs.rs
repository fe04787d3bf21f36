//! Mistakes in the structs and arrays of a step, with host arrays on "cpu" and "ascend-sim" and with
//! device arrays in a stream: each is refused with a status and a message and changes nothing.

use std::ffi::c_void;
use std::ptr::{null, null_mut, without_provenance_mut};

use avsg::ascend::acl::Stream;
use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::device_arrays::DeviceStep;
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

type Change = fn(&mut avsg_batch, &mut avsg_fresh);

/// Mistakes in the structs of a step, with the status and with parts of the message that are the same
/// for host arrays and in a stream.
const MISTAKES: &[(Change, avsg_status, &[&str])] = &[
    (|b, _| b.size = 8, AVSG_SIZE, &["avsg_batch.size is 8"]),
    (|b, _| b.k = 0, AVSG_INVALID, &["k is 0"]),
    (|b, _| b.k = 9, AVSG_INVALID, &["k is 9"]),
    (|b, _| b.ids_stride = 7, AVSG_INVALID, &["ids_stride is 7"]),
    (|b, _| b.ids.data = null(), AVSG_NULL, &["ids is NULL"]),
    (|b, _| b.ids.data = b.ids.data.wrapping_byte_add(2), AVSG_INVALID, &["ids is", "of 4"]),
    (|b, _| b.ids.len = usize::MAX / 4, AVSG_INVALID, &["ids "]),
    (|b, _| b.cu_q.len = 2, AVSG_INVALID, &["cu_q length is 2"]),
    (|b, _| b.cu_q.data = null(), AVSG_NULL, &["cu_q is NULL"]),
    (|b, _| b.state.data = null(), AVSG_NULL, &["state is NULL"]),
    (|b, _| b.generation.len = 1, AVSG_INVALID, &["generation length is 1"]),
    (|b, _| b.generation.data = null(), AVSG_NULL, &["generation is NULL"]),
    (|b, _| b.stable_len.len = 0, AVSG_INVALID, &["stable_len length is 0"]),
    (|b, _| b.stable_len.data = null(), AVSG_NULL, &["stable_len is NULL"]),
    (|b, _| b.seq_len.len = 1, AVSG_INVALID, &["seq_len length is 1"]),
    (|b, _| b.seq_len.data = null(), AVSG_NULL, &["seq_len is NULL"]),
    (|b, _| b.block_table.len = 15, AVSG_INVALID, &["block_table length is 15"]),
    (|b, _| b.block_table.data = null(), AVSG_NULL, &["block_table is NULL"]),
    (|b, _| b.block_stride = 0, AVSG_INVALID, &["block_stride is 0", "page is 16"]),
    (|b, _| b.block_stride = usize::MAX, AVSG_INVALID, &["block_table length is 16"]),
    (|b, _| b.indexer = 1, AVSG_INVALID, &["indexer is 1"]),
    (|_, f| f.size = 8, AVSG_SIZE, &["avsg_fresh.size is 8"]),
    (|_, f| f.segments = 1, AVSG_INVALID, &["fresh segments is 1", "a row has 2"]),
    (|_, f| f.segments = 5, AVSG_INVALID, &["avsg_fresh.segments is 5", "1 to 4"]),
    (|_, f| f.data[1] = null(), AVSG_NULL, &["fresh data is NULL"]),
    (|_, f| f.bytes[0] = 4 * 24 - 1, AVSG_INVALID, &["fresh bytes is 95", "need 96"]),
    (|_, f| f.bytes[1] = usize::MAX, AVSG_INVALID, &["fresh "]),
];

/// The layers and the fresh rows of an append, and its answer.
type WrongAppend<'a> = (&'a [usize], &'a [avsg_fresh], avsg_status, &'a [&'a str]);

/// Makes each mistake, in a stream unless it is NULL. The engine has done nothing then.
fn refuse_mistakes(handles: &Handles, stream: *mut c_void, batch: &avsg_batch, whole: avsg_fresh) {
    let Handles { engine, plan, .. } = *handles;
    // SAFETY: the struct has its `size` set.
    let stats = || filled(|to| unsafe { avsg_engine_get_stats(engine, to) });
    let before = format!("{:?}", stats());
    let step = |batch: &avsg_batch, fresh: *const avsg_fresh| {
        // SAFETY: the arrays are valid or refused before they are read.
        unsafe { avsg_engine_step(engine, batch, plan, 0, fresh, stream) }
    };
    for (change, expected, parts) in MISTAKES {
        let (mut batch, mut fresh) = (*batch, whole);
        change(&mut batch, &mut fresh);
        expect_error(step(&batch, &fresh), *expected, parts);
    }
    // In a stream the host does not see whether a row is fresh.
    if stream.is_null() {
        expect_error(step(batch, null()), AVSG_INVALID, &["fresh rows is none"]);
    }
    let append = |batch: &avsg_batch, layers: &[usize], fresh: &[avsg_fresh]| {
        let (numbers, count) = (pointer(layers), layers.len());
        // SAFETY: the arrays are valid.
        unsafe { avsg_engine_append(engine, batch, numbers, count, pointer(fresh), stream) }
    };
    let one = avsg_fresh { segments: 1, ..whole };
    let longer = avsg_fresh { size: whole.size + 8, ..whole };
    let longer = [whole, longer, avsg_fresh { size: 0, ..sized() }];
    let cases: [WrongAppend<'_>; 5] = [
        (&[0], &[], AVSG_NULL, &["fresh is NULL", "append"]),
        (&[0, 1], &[whole, one], AVSG_INVALID, &["fresh[1] has 1 segments, but fresh[0] has 2"]),
        (&[1, 0], &[whole; 2], AVSG_INVALID, &["layer is 0, but it comes after layer 1"]),
        (&[0, 1], &longer, AVSG_SIZE, &["fresh[1].size is 88", "fresh[0].size is 80"]),
        (&[0; 129], &[whole; 129], AVSG_INVALID, &["count is 129", "128 layers"]),
    ];
    for (layers, fresh, status, parts) in cases {
        expect_error(append(batch, layers, fresh), status, parts);
    }
    // An empty list is checked as any other.
    ok(append(batch, &[], &[whole]));
    ok(append(batch, &[], &[]));
    let mut short = *batch;
    short.seq_len.len = 1;
    expect_error(append(&short, &[], &[]), AVSG_INVALID, &["seq_len length is 1"]);
    assert_eq!(format!("{:?}", stats()), before, "a refused call has done something");
}

#[test]
fn mistakes_in_a_step_are_refused_on_each_device_and_in_a_stream_and_the_next_step_is_exact() {
    each_device(|device| {
        let (handles, mut owned) = (Handles::on(device), Arrays::new(0));
        refuse_mistakes(&handles, null_mut(), &owned.batch(), owned.fresh());
        if let Some(context) = &handles.context {
            let (step, stream) = (DeviceStep::new(context, &owned), Stream::new(context).unwrap());
            refuse_mistakes(&handles, stream.raw().handle(), &step.batch, step.fresh);
        }
        // An id out of range is padding and sets a bit of its request.
        owned.ids[2] = 128;
        ok(handles.step(&owned, 0));
        assert_eq!(handles.expect_exact(&owned, 0), 31);
        // SAFETY: the structs have their `size` set, and the plan's arrays hold the batch.
        unsafe {
            let out = filled(|to| avsg_plan_get_arrays(handles.plan, HOST, to));
            let counters = filled(|to| avsg_plan_get_counters(handles.plan, to));
            assert_eq!((*out.valid, *out.slot.add(2)), (7, -1));
            let bit = avsg_request_status::AVSG_REQUEST_ID_OUT_OF_RANGE as i32;
            assert_eq!((*out.summary.add(AVSG_SUMMARY_STATUS), counters.status), (bit, bit));
        }
        handles.destroy();
    });
}

/// Returns the address of a list, NULL if it is empty.
fn pointer<T>(list: &[T]) -> *const T {
    if list.is_empty() { null() } else { list.as_ptr() }
}

#[test]
fn a_stream_that_does_not_exist_is_refused_or_an_error_of_the_device() {
    each_device(|device| {
        let (handles, owned) = (Handles::on(device), Arrays::new(0));
        let (batch, fresh, stream) = (owned.batch(), owned.fresh(), without_provenance_mut(16));
        // SAFETY: `owned` owns the arrays, and the stream is refused without a use of it.
        let status =
            unsafe { avsg_engine_step(handles.engine, &batch, handles.plan, 0, &fresh, stream) };
        if device == c"cpu" {
            expect_error(status, AVSG_UNSUPPORTED, &["stream is 0x10", "pass NULL"]);
        } else {
            // Every state starts cold after that.
            expect_error(status, AVSG_DEVICE, &["failed with code 107"]);
        }
        ok(handles.step(&owned, 0));
        assert_eq!(handles.expect_exact(&owned, 0), 32);
        handles.destroy();
    });
}

#[test]
fn counts_that_do_not_fit_are_refused_before_their_array_is_read() {
    let handles = Handles::on_cpu();
    // The arrays of a batch agree in their false length.
    let owned = Arrays::new(0);
    let mut batch = owned.batch();
    let avsg_batch { cu_q, state, generation, stable_len, seq_len, .. } = &mut batch;
    for array in [cu_q, state, generation, stable_len, seq_len] {
        // SAFETY: `owned` owns the array.
        let values = unsafe { std::slice::from_raw_parts(array.data, array.len) };
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
