//! Invalid batches and fresh rows, and plans transferred out of order.

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut, without_provenance_mut};

use avsg_capi::avsg_status::*;
use avsg_capi::*;

use super::expect_step_works;
use avsg_capi_testkit::*;

#[test]
fn invalid_batches_are_refused_and_the_next_step_is_exact() {
    each_device(refuse_invalid_batches);
}

fn refuse_invalid_batches(device: &'static CStr) {
    let handles = Handles::on(device);
    let step = std::cell::Cell::new(0);
    let refuse = |change: &dyn Fn(&mut avsg_batch, &mut avsg_fresh), expected, parts: &[&str]| {
        let owned = Arrays::new(step.get());
        let (mut batch, mut fresh) = (owned.batch(), owned.fresh());
        change(&mut batch, &mut fresh);
        // SAFETY: `owned` owns the arrays, and each length is at most the true one or too large for
        // any memory.
        let status = unsafe {
            avsg_engine_step(handles.engine, &batch, handles.plan, 0, &fresh, null_mut())
        };
        expect_error(status, expected, parts);
        step.set(step.get() + 1);
        expect_step_works(&handles, step.get());
    };
    refuse(&|b, _| b.ids.len = 31, AVSG_INVALID, &["ids length is 31", "need 32"]);
    refuse(&|b, _| b.ids.data = null(), AVSG_NULL, &["ids is NULL"]);
    refuse(&|b, _| b.ids.len = usize::MAX, AVSG_INVALID, &["ids has", "address space"]);
    refuse(
        &|b, _| b.ids.data = b.ids.data.wrapping_byte_add(2),
        AVSG_INVALID,
        &["ids is", "multiple of 4"],
    );
    refuse(&|b, _| b.k = 9, AVSG_INVALID, &["k is 9", "K is 8"]);
    refuse(&|b, _| b.k = 0, AVSG_INVALID, &["k is 0"]);
    refuse(&|b, _| b.ids_stride = 7, AVSG_INVALID, &["ids_stride is 7"]);
    refuse(&|b, _| b.cu_q.len = 2, AVSG_INVALID, &["cu_q length is 2", "has 3"]);
    refuse(
        &|b, _| b.cu_q = avsg_i32s { data: null(), len: 0 },
        AVSG_INVALID,
        &["cu_q length is 0"],
    );
    refuse(&|b, _| b.generation.len = 1, AVSG_INVALID, &["generation length is 1"]);
    refuse(&|b, _| b.stable_len.len = 0, AVSG_INVALID, &["stable_len length is 0"]);
    refuse(&|b, _| b.seq_len.len = 1, AVSG_INVALID, &["seq_len length is 1"]);
    refuse(&|b, _| b.block_table.len = 15, AVSG_INVALID, &["block_table length is 15", "need 16"]);
    refuse(&|b, _| b.block_stride = 0, AVSG_INVALID, &["block_stride is 0", "page is 16"]);
    refuse(&|b, _| b.block_stride = usize::MAX, AVSG_INVALID, &["block_table length"]);
    refuse(&|_, f| f.segments = 1, AVSG_INVALID, &["fresh segments is 1", "a row has 2"]);
    refuse(&|_, f| f.segments = 5, AVSG_INVALID, &["segments is 5", "1 to 4"]);
    refuse(&|_, f| f.bytes[1] = 63, AVSG_INVALID, &["fresh bytes is 63", "need 64"]);
    refuse(&|_, f| f.data[0] = null(), AVSG_NULL, &["fresh data is NULL"]);
    refuse(&|_, f| f.size = 8, AVSG_SIZE, &["avsg_fresh.size is 8"]);

    let mut owned = Arrays::new(0);
    for bad in [2, -2, i32::MAX, i32::MIN] {
        owned.state[0] = bad;
        expect_error(handles.step(&owned, 0), AVSG_INVALID, &[&format!("state is {bad}"), "0..2"]);
    }
    owned.state[0] = 0;
    expect_error(handles.step(&owned, 0), AVSG_INVALID, &["state is 0", "second to name it"]);
    let owned = Arrays::new(0);
    expect_error(handles.step(&owned, 2), AVSG_INVALID, &["layer is 2", "there are 2"]);
    // SAFETY: `owned` owns the arrays, and the stream is refused without a use of it.
    unsafe {
        let (batch, fresh) = (owned.batch(), owned.fresh());
        let stream = without_provenance_mut::<c_void>(16);
        let status = avsg_engine_step(handles.engine, &batch, handles.plan, 0, &fresh, stream);
        if device == c"cpu" {
            expect_error(status, AVSG_UNSUPPORTED, &["stream is 0x10", "pass NULL"]);
        } else {
            // The runtime refuses a stream that it did not create, and every state starts cold
            // after that.
            expect_error(status, AVSG_DEVICE, &["failed with code 107"]);
        }
        let status = avsg_engine_step(handles.engine, &batch, handles.plan, 0, null(), null_mut());
        expect_error(status, AVSG_INVALID, &["fresh rows is none"]);
        let status = avsg_engine_append(handles.engine, &batch, 0, null(), null_mut());
        expect_error(status, AVSG_NULL, &["fresh is NULL"]);
        expect_error(
            avsg_engine_step(handles.engine, null(), handles.plan, 0, &fresh, null_mut()),
            AVSG_NULL,
            &["avsg_batch is NULL"],
        );
    }
    // SAFETY: each call is refused before it reads the array that is too long.
    unsafe {
        let (mut batch, fresh) = (owned.batch(), owned.fresh());
        for len in [4, 1 << 40] {
            batch.cu_q.len = len;
            let status = avsg_engine_append(handles.engine, &batch, 0, &fresh, null_mut());
            expect_error(status, AVSG_INVALID, &[&format!("cu_q length is {len}"), "has 3"]);
        }
    }
    // An id out of range is treated as padding and sets a status bit of its request; it is no
    // error.
    let mut owned = Arrays::new(7);
    owned.ids[2] = 128;
    ok(handles.step(&owned, 0));
    let mut one: avsg_plan_request = sized();
    // SAFETY: the struct has its `size` set, and the plan's arrays hold the batch.
    unsafe {
        ok(avsg_plan_get_request(handles.plan, 0, &mut one));
        assert_eq!((one.first_token, one.tokens, *one.valid, *one.slot.add(2)), (0, 2, 7, -1));
        assert_eq!(one.status, avsg_request_status::AVSG_REQUEST_ID_OUT_OF_RANGE as i32);
        expect_error(
            avsg_plan_get_request(handles.plan, 2, &mut one),
            AVSG_INVALID,
            &["request is 2"],
        );
    }
    expect_step_works(&handles, 8);
    handles.destroy();
}

#[test]
fn batches_that_overlap_the_outputs_of_their_plan_are_refused() {
    each_device(refuse_overlapping_batches);
}

fn refuse_overlapping_batches(device: &'static CStr) {
    let handles = Handles::on(device);
    let (owned, mut outputs) = (Arrays::new(1), sized::<avsg_plan_arrays>());
    ok(handles.step(&owned, 0));
    // SAFETY: the struct has its `size` set.
    ok(unsafe { avsg_plan_get_arrays(handles.plan, HOST, &mut outputs) });
    type Array = fn(&mut avsg_batch) -> &mut avsg_i32s;
    let inputs: [(&str, Array); 7] = [
        ("ids", |b| &mut b.ids),
        ("cu_q", |b| &mut b.cu_q),
        ("state", |b| &mut b.state),
        ("generation", |b| &mut b.generation),
        ("stable_len", |b| &mut b.stable_len),
        ("seq_len", |b| &mut b.seq_len),
        ("block_table", |b| &mut b.block_table),
    ];
    // The first and the last element of an output, and an array that ends in its first one.
    let places = [
        ("slot", outputs.slot.wrapping_add(31), 1),
        ("valid", outputs.valid, 1),
        ("cu_q", outputs.cu_q.wrapping_add(2), 1),
        ("record", outputs.record.wrapping_add(31), 1),
        ("miss_position", outputs.miss_position, 1),
        ("miss_id", outputs.miss_id.wrapping_sub(1), 2),
        ("miss_slot", outputs.miss_slot.wrapping_add(31), 1),
        ("miss_row", outputs.miss_row, 1),
    ];
    for (input, array) in inputs {
        for (output, data, len) in places {
            let (mut batch, fresh) = (owned.batch(), owned.fresh());
            *array(&mut batch) = avsg_i32s { data, len };
            let parts = [&format!("{input} has {len}")[..], &format!("the plan's {output} there")];
            let (engine, plan) = (handles.engine, handles.plan);
            // SAFETY: the overlap is refused before any array is read.
            unsafe {
                let status = avsg_engine_plan(engine, &batch, plan, null_mut());
                expect_error(status, AVSG_INVALID, &parts);
                let status = avsg_engine_step(engine, &batch, plan, 0, &fresh, null_mut());
                expect_error(status, AVSG_INVALID, &parts);
            }
        }
    }
    for input in ["ids", "block_table"] {
        for (output, data, len) in places {
            let (mut load, array) = (sized::<avsg_load>(), avsg_i32s { data, len });
            match input {
                "ids" => load.ids = array,
                _ => load.block_table = array,
            }
            let parts = [&format!("{input} has {len}")[..], &format!("the plan's {output} there")];
            // SAFETY: the overlap is refused before any array is read.
            let status = unsafe { avsg_engine_load(handles.engine, &load, handles.plan) };
            expect_error(status, AVSG_INVALID, &parts);
        }
    }
    expect_step_works(&handles, 2);
    handles.destroy();
}

#[test]
fn plans_out_of_order_are_refused() {
    each_device(refuse_plans_out_of_order);
}

fn refuse_plans_out_of_order(device: &'static CStr) {
    let handles = Handles::on(device);
    let (a, b) = (Arrays::new(1), Arrays::new(2));
    let (mut newer, mut counters) = (null_mut(), sized::<avsg_plan_counters>());
    let transfer = |plan, layer| {
        let fresh = a.fresh();
        // SAFETY: `a` owns the fresh rows.
        unsafe { avsg_engine_transfer(handles.engine, plan, layer, &fresh, null_mut()) }
    };
    // SAFETY: the structs have their `size` set, and `a` and `b` own the arrays.
    unsafe {
        ok(avsg_plan_create(handles.engine, 4, 2, &mut newer));
        expect_error(transfer(newer, 0), AVSG_INVALID, &["plan is empty", "plan one first"]);
        ok(avsg_engine_plan(handles.engine, &a.batch(), handles.plan, null_mut()));
        ok(avsg_engine_plan(handles.engine, &b.batch(), newer, null_mut()));
        ok(avsg_plan_get_counters(newer, &mut counters));
    }
    assert!(counters.number == 2 && counters.misses > 0);
    let parts = ["plan number is 2", "layer 0 lacks the rows of plan 1", "transfer that one first"];
    expect_error(transfer(newer, 0), AVSG_INVALID, &parts);
    [handles.plan, newer].into_iter().for_each(|plan| ok(transfer(plan, 0)));
    let newer_handles = Handles { plan: newer, context: handles.context.clone(), ..handles };
    assert_eq!(newer_handles.expect_exact(&b, 0), 32);
    let parts = ["plan number is 1", "layer 0 has the rows of plan 2", "order in which"];
    expect_error(transfer(handles.plan, 0), AVSG_INVALID, &parts);
    assert_eq!(newer_handles.expect_exact(&b, 0), 32);
    // Layer 1 lacks the misses of both plans, so that a step's hits would have no rows there.
    expect_error(handles.step(&a, 1), AVSG_INVALID, &["plan number is 3", "layer 1 lacks"]);
    [handles.plan, newer].into_iter().for_each(|plan| ok(transfer(plan, 1)));
    expect_step_works(&handles, 3);
    ok(avsg_plan_destroy(newer));
    handles.destroy();
}
