//! Calls in a stream: how many kernels a step launches, and which arguments it refuses. The
//! contents of the arrays cannot be checked.

use std::ptr::{null, null_mut, without_provenance};

use avsg::ascend::acl::Stream;
use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_sim::{Options, Session};

use avsg_capi_testkit::device_arrays::{DeviceStep, handles_on, handles_with};
use avsg_capi_testkit::*;

#[test]
fn a_step_launches_the_configured_number_of_kernels() {
    if !have_compiler() {
        return;
    }
    // The configured number, and the launches of a step with a NULL stream and in a stream.
    for (launches, waiting, queued) in [(0, 1, 2), (1, 1, 1), (2, 2, 2)] {
        let session = Session::new(Options::default());
        let tuning = avsg_tuning { launches, ..tuning() };
        let handles = handles_with(c"ascend-sim", |config| config.tuning = &tuning);
        let context = handles.context.clone().unwrap();
        let stream = Stream::new(&context).unwrap();
        let owned = Arrays::new(1);
        let before = session.launches();
        ok(handles.step(&owned, 0));
        assert_eq!(session.launches() - before, waiting, "launches {launches}");
        assert_eq!(handles.expect_exact(&owned, 0), 32);
        let (arrays, before) = (DeviceStep::new(&context, &owned), session.launches());
        // SAFETY: `arrays` is valid until the stream has been synchronized.
        unsafe {
            let raw = stream.raw().handle();
            ok(avsg_engine_step(
                handles.engine,
                &arrays.batch,
                handles.plan,
                0,
                &arrays.fresh[0],
                raw,
            ));
        }
        stream.synchronize(10_000).unwrap();
        assert_eq!(session.launches() - before, queued, "launches {launches}");
        drop((arrays, stream));
        handles.destroy();
        drop(context);
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

#[test]
fn invalid_arguments_in_a_stream_are_refused_without_a_launch() {
    if !have_compiler() {
        return;
    }
    let session = Session::new(Options::default());
    let (handles, other) = (handles_on(c"ascend-sim"), handles_on(c"ascend-sim"));
    let context = handles.context.clone().unwrap();
    let stream = Stream::new(&context).unwrap();
    let raw = stream.raw().handle();
    let owned = Arrays::new(1);
    let arrays = DeviceStep::new(&context, &owned);
    let launched = session.launches();
    let step = |batch: &avsg_batch, fresh: &avsg_fresh, plan, layer| {
        // SAFETY: `arrays` owns the device memory, and a call with a wrong address or length is
        // refused.
        unsafe { avsg_engine_step(handles.engine, batch, plan, layer, fresh, raw) }
    };
    type Change = fn(&mut avsg_batch, &mut avsg_fresh);
    #[rustfmt::skip]
    let cases: [(Change, avsg_status, &[&str]); 24] = [
        (|b, _| b.size = 8, AVSG_SIZE, &["avsg_batch.size is 8"]),
        (|b, _| b.k = 0, AVSG_INVALID, &["k is 0", "1..=8"]),
        (|b, _| b.k = 9, AVSG_INVALID, &["k is 9", "1..=8"]),
        (|b, _| b.ids_stride = 7, AVSG_INVALID, &["ids_stride is 7", "at least k"]),
        (|b, _| b.ids.data = null(), AVSG_NULL, &["ids is NULL"]),
        (|b, _| b.ids.data = b.ids.data.wrapping_byte_add(1), AVSG_INVALID, &["ids is", "multiple of 4"]),
        (|b, _| b.ids.len = usize::MAX / 4, AVSG_INVALID, &["ids is", "the whole array"]),
        (|b, _| b.cu_q.len = 2, AVSG_INVALID, &["cu_q length is 2", "needs 3"]),
        (|b, _| b.cu_q.data = null(), AVSG_NULL, &["cu_q is NULL"]),
        (|b, _| b.state.data = null(), AVSG_NULL, &["state is NULL"]),
        (|b, _| b.state.len = (1 << 20) + 1, AVSG_INVALID, &["requests is 1048577", "split the batch"]),
        (|b, _| b.state.len = usize::MAX, AVSG_INVALID, &["requests is"]),
        (|b, _| b.generation.len = 1, AVSG_INVALID, &["generation length is 1", "needs 2"]),
        (|b, _| b.stable_len.len = 0, AVSG_INVALID, &["stable_len length is 0"]),
        (|b, _| b.seq_len.data = null(), AVSG_NULL, &["seq_len is NULL"]),
        (|b, _| b.block_table.len = 15, AVSG_INVALID, &["block_table length is 15", "needs 16"]),
        (|b, _| b.block_stride = 0, AVSG_INVALID, &["block_stride is 0", "page is 16"]),
        (|b, _| b.block_stride = usize::MAX, AVSG_INVALID, &["block_table length is 16"]),
        (|_, f| f.size = 8, AVSG_SIZE, &["avsg_fresh.size is 8"]),
        (|_, f| f.segments = 1, AVSG_INVALID, &["fresh segments is 1", "a row has 2"]),
        (|_, f| f.segments = 5, AVSG_INVALID, &["fresh segments is 5", "a row has 2"]),
        (|_, f| f.data[1] = null(), AVSG_NULL, &["fresh data is NULL"]),
        (|_, f| f.bytes[0] = 4 * 24 - 1, AVSG_INVALID, &["fresh bytes is 95", "need 96"]),
        (|_, f| f.bytes[1] = usize::MAX, AVSG_INVALID, &["address of fresh rows is"]),
    ];
    for (change, expected, parts) in cases {
        let (mut batch, mut fresh) = (arrays.batch, arrays.fresh[0]);
        change(&mut batch, &mut fresh);
        expect_error(step(&batch, &fresh, handles.plan, 0), expected, parts);
    }
    let mut outputs: avsg_plan_arrays = sized();
    // SAFETY: the struct has its `size` set.
    ok(unsafe { avsg_plan_get_arrays(handles.plan, DEVICE, &mut outputs) });
    let overlapping =
        avsg_batch { ids: avsg_i32s { data: outputs.miss_id, len: 32 }, ..arrays.batch };
    let parts = ["ids has 32", "the plan's miss_id there"];
    expect_error(step(&overlapping, &arrays.fresh[0], handles.plan, 0), AVSG_INVALID, &parts);
    let mut slots: avsg_buffer = sized();
    // SAFETY: the struct has its `size` set.
    ok(unsafe { avsg_engine_get_buffer(handles.engine, 1, 0, &mut slots) });
    let mut overlapping = arrays.batch;
    overlapping.seq_len.data = slots.base.cast_const().cast();
    let parts = ["seq_len has 2 elements", "the engine's device buffer there"];
    expect_error(step(&overlapping, &arrays.fresh[0], handles.plan, 0), AVSG_INVALID, &parts);
    let mut overlapping = arrays.fresh[0];
    overlapping.data[0] = slots.base;
    let parts = ["fresh data has 96 bytes", "the engine's device buffer there"];
    expect_error(step(&arrays.batch, &overlapping, handles.plan, 0), AVSG_INVALID, &parts);
    expect_error(
        step(&arrays.batch, &arrays.fresh[0], handles.plan, 2),
        AVSG_INVALID,
        &["layer is 2"],
    );
    expect_error(
        step(&arrays.batch, &arrays.fresh[0], other.plan, 0),
        AVSG_INVALID,
        &["plan is foreign"],
    );
    let mut small = null_mut();
    // SAFETY: the out-pointer is a local variable, and `arrays` owns the device memory.
    unsafe {
        ok(avsg_plan_create(handles.engine, 3, 2, &mut small));
        expect_error(
            step(&arrays.batch, &arrays.fresh[0], small, 0),
            AVSG_INVALID,
            &["tokens is 4", "holds 3"],
        );
        let status = avsg_engine_transfer(handles.engine, small, 0, &arrays.fresh[0], raw);
        expect_error(status, AVSG_INVALID, &["not planned in a stream", "plan it in the stream"]);
        let status = avsg_engine_append(handles.engine, &arrays.batch, 0, null(), raw);
        expect_error(status, AVSG_NULL, &["fresh is NULL", "append"]);
        let status = avsg_engine_append(handles.engine, &arrays.batch, 2, &arrays.fresh[0], raw);
        expect_error(status, AVSG_INVALID, &["layer is 2"]);
        ok(avsg_plan_destroy(small));
    }
    assert_eq!(session.launches(), launched, "a refused call launches nothing");
    // An address without memory fails on the device, when the stream runs.
    let mut unmapped = arrays.batch;
    unmapped.ids.data = without_provenance(4096);
    ok(step(&unmapped, &arrays.fresh[0], handles.plan, 0));
    assert!(stream.synchronize(10_000).is_err());
    drop((arrays, stream));
    other.destroy();
    handles.destroy();
    drop(context);
    assert_eq!(session.leaks(), Vec::<String>::new());
}
