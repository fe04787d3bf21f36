//! Batches, fresh rows and plans that break a rule.

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut, without_provenance_mut};

use avsg_capi::avsg_status::*;
use avsg_capi::*;

use super::c::*;
use super::goes_on;

#[test]
fn batches() {
    each_device(batches_on);
}

fn batches_on(device: &'static CStr) {
    let life = Life::on(device);
    let step = std::cell::Cell::new(0);
    let refuse = |spoil: &dyn Fn(&mut avsg_batch, &mut avsg_fresh), want, parts: &[&str]| {
        let owned = Arrays::new(step.get());
        let (mut batch, mut fresh) = (owned.batch(), owned.fresh());
        spoil(&mut batch, &mut fresh);
        // SAFETY: arrays are `owned`'s, with lengths not above the true ones, or refused as such.
        let status =
            unsafe { avsg_engine_step(life.engine, &batch, life.plan, 0, &fresh, null_mut()) };
        fails(status, want, parts);
        step.set(step.get() + 1);
        goes_on(&life, step.get());
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
    refuse(&|b, _| b.block_stride = usize::MAX, AVSG_INVALID, &["block_table length"]);
    refuse(&|_, f| f.segments = 1, AVSG_INVALID, &["fresh segments is 1", "a row has 2"]);
    refuse(&|_, f| f.segments = 5, AVSG_INVALID, &["segments is 5", "1 to 4"]);
    refuse(&|_, f| f.bytes[1] = 63, AVSG_INVALID, &["fresh bytes is 63", "need 64"]);
    refuse(&|_, f| f.data[0] = null(), AVSG_NULL, &["fresh data is NULL"]);
    refuse(&|_, f| f.size = 8, AVSG_SIZE, &["avsg_fresh.size is 8"]);

    let mut owned = Arrays::new(0);
    for bad in [2, -2, i32::MAX, i32::MIN] {
        owned.state[0] = bad;
        fails(life.step(&owned, 0), AVSG_INVALID, &[&format!("state is {bad}"), "0..2"]);
    }
    owned.state[0] = 0;
    fails(life.step(&owned, 0), AVSG_INVALID, &["state is 0", "second to name it"]);
    let owned = Arrays::new(0);
    fails(life.step(&owned, 2), AVSG_INVALID, &["layer is 2", "there are 2"]);
    // SAFETY: everything is there; a stream is refused, not used.
    unsafe {
        let (batch, fresh) = (owned.batch(), owned.fresh());
        let stream = without_provenance_mut::<c_void>(16);
        let status = avsg_engine_step(life.engine, &batch, life.plan, 0, &fresh, stream);
        if device == c"cpu" {
            fails(status, AVSG_UNSUPPORTED, &["stream is 0x10", "pass NULL"]);
        } else {
            // The runtime knows its streams; what is queued there starts every state cold.
            fails(status, AVSG_DEVICE, &["failed with code 107"]);
        }
        let status = avsg_engine_step(life.engine, &batch, life.plan, 0, null(), null_mut());
        fails(status, AVSG_INVALID, &["fresh rows is none"]);
        let status = avsg_engine_append(life.engine, &batch, 0, null(), null_mut());
        fails(status, AVSG_NULL, &["fresh is NULL"]);
        fails(
            avsg_engine_step(life.engine, null(), life.plan, 0, &fresh, null_mut()),
            AVSG_NULL,
            &["avsg_batch is NULL"],
        );
    }
    // Ids out of range are data, not mistakes: padding and a bit of the request's status.
    let mut owned = Arrays::new(7);
    owned.ids[2] = 128;
    ok(life.step(&owned, 0));
    let mut found: avsg_plan_request = sized();
    // SAFETY: a struct with its size; the plan's arrays hold the batch.
    unsafe {
        ok(avsg_plan_get_request(life.plan, 0, &mut found));
        assert_eq!((found.first_row, found.rows, *found.valid, *found.slot.add(2)), (0, 2, 7, -1));
        assert_eq!(found.status, avsg_request_status::AVSG_REQUEST_ID_OUT_OF_RANGE as i32);
        fails(avsg_plan_get_request(life.plan, 2, &mut found), AVSG_INVALID, &["request is 2"]);
    }
    goes_on(&life, 8);
    life.end();
}

/// Plans that come too late or too early for a layer.
#[test]
fn plans_out_of_order() {
    each_device(plans_out_of_order_on);
}

fn plans_out_of_order_on(device: &'static CStr) {
    let life = Life::on(device);
    let (a, b) = (Arrays::new(1), Arrays::new(2));
    let (mut newer, mut counters) = (null_mut(), sized::<avsg_plan_counters>());
    let transfer = |plan, layer| {
        let fresh = a.fresh();
        // SAFETY: `a` keeps the rows.
        unsafe { avsg_engine_transfer(life.engine, plan, layer, &fresh, null_mut()) }
    };
    // SAFETY: structs with their sizes; `a` and `b` keep all arrays.
    unsafe {
        ok(avsg_plan_create(life.engine, 4, 2, &mut newer));
        fails(transfer(newer, 0), AVSG_INVALID, &["plan is empty", "plan one first"]);
        ok(avsg_engine_plan(life.engine, &a.batch(), life.plan, null_mut()));
        ok(avsg_engine_plan(life.engine, &b.batch(), newer, null_mut()));
        ok(avsg_plan_get_counters(newer, &mut counters));
    }
    assert!(counters.number == 2 && counters.misses > 0);
    let parts = ["plan number is 2", "layer 0 lacks the rows of plan 1", "transfer that one first"];
    fails(transfer(newer, 0), AVSG_INVALID, &parts);
    [life.plan, newer].into_iter().for_each(|plan| ok(transfer(plan, 0)));
    let newer_life = Life { plan: newer, context: life.context.clone(), ..life };
    assert_eq!(newer_life.expect_exact(&b, 0), 32);
    let parts = ["plan number is 1", "layer 0 has the rows of plan 2", "order in which"];
    fails(transfer(life.plan, 0), AVSG_INVALID, &parts);
    assert_eq!(newer_life.expect_exact(&b, 0), 32);
    // Layer 1 has neither yet: a step there would find nothing of what they missed.
    fails(life.step(&a, 1), AVSG_INVALID, &["plan number is 3", "layer 1 lacks"]);
    [life.plan, newer].into_iter().for_each(|plan| ok(transfer(plan, 1)));
    goes_on(&life, 3);
    ok(avsg_plan_destroy(newer));
    life.end();
}
