//! Prefill by one append, load, fork and discard through C, on "cpu" and "ascend-sim".

use std::ptr::{null, null_mut};

use avsg_capi::avsg_status::AVSG_INVALID;
use avsg_capi::*;
use avsg_capi_testkit::*;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::check_row;
use avsg_testkit::fresh::FreshRows;

/// Returns a batch of one request in state 0 that selects the ids `first..first + K`.
fn selection(state: i32, generation: i32, first: i32) -> OwnedBatch {
    let blocks = (0..8).collect();
    let mut owned = OwnedBatch { blocks, block_stride: 8, ..OwnedBatch::new(K, 0) };
    owned.push([state, generation, -1, 128], &[(first..first + K as i32).collect()]);
    owned
}

/// Steps both layers and returns the number of misses.
fn misses(handles: &Handles, owned: &OwnedBatch) -> usize {
    let batch = c_batch(owned);
    let mut counters: avsg_plan_counters = sized();
    // SAFETY: `owned` owns the arrays, and the struct has its `size` set.
    unsafe {
        ok(avsg_engine_step(handles.engine, &batch, handles.plan, 0, null(), null_mut()));
        ok(avsg_engine_transfer(handles.engine, handles.plan, 1, null(), null_mut()));
        ok(avsg_plan_get_counters(handles.plan, &mut counters));
    }
    for layer in 0..2 {
        assert_eq!(handles.expect_exact(owned, layer), K);
    }
    counters.misses
}

#[test]
fn one_append_writes_all_rows_of_a_request() {
    each_device(|device| {
        let handles = Handles::on(device);
        let blocks = (0..8).rev().collect();
        let mut owned = OwnedBatch { blocks, block_stride: 8, ..OwnedBatch::new(K, 0) };
        owned.push([1, 1, 3, 103], &vec![vec![-1; K]; 100]);
        let mut rows = FreshRows::new(&format(), 100);
        (0..100).for_each(|at| rows.put(at, 3 + at as i32, 40));
        let (batch, fresh) = (c_batch(&owned), c_fresh(&rows));
        // SAFETY: `owned` and `rows` own the arrays.
        ok(unsafe { avsg_engine_append(handles.engine, &batch, 1, &fresh, null_mut()) });
        let mut found = [0; ROW];
        for id in 0..128usize {
            let host = (7 - id / 16) * 16 + id % 16;
            // SAFETY: `found` has as many bytes as a row.
            ok(unsafe {
                avsg_pool_read_row(handles.pool, 1, host, found.as_mut_ptr().cast(), ROW)
            });
            let (id, version) = if (3..103).contains(&id) { (id, 40) } else { (host, 1) };
            assert!(check_row(id as i32, version, &found), "host row {host}");
        }
        handles.destroy();
    });
}

#[test]
fn loaded_and_forked_states_hit() {
    each_device(|device| {
        let handles = Handles::on(device);
        let ids: Vec<i32> = (10..40).collect();
        let blocks: Vec<i32> = (0..8).collect();
        let array = |words: &[i32]| avsg_i32s { data: words.as_ptr(), len: words.len() };
        let load = avsg_load {
            ids: array(&ids),
            block_table: array(&blocks),
            state: 0,
            generation: 3,
            seq_len: 128,
            ..sized()
        };
        // SAFETY: the arrays of the struct are alive, and its `size` is set.
        ok(unsafe { avsg_engine_load(handles.engine, &load, handles.plan) });
        assert_eq!(misses(&handles, &selection(0, 3, 20)), 0);
        assert_eq!(misses(&handles, &selection(0, 3, 38)), K - 2);
        ok(avsg_engine_fork(handles.engine, 0, 3, 1, 5));
        assert_eq!(misses(&handles, &selection(1, 5, 38)), 0);
        assert_eq!(misses(&handles, &selection(1, 6, 38)), K);
        assert_eq!(misses(&handles, &selection(0, 3, 38)), 0);
        expect_error(
            avsg_engine_fork(handles.engine, 1, 6, 1, 5),
            AVSG_INVALID,
            &["state is 1", "another one"],
        );
        ok(avsg_engine_invalidate(handles.engine, 0, 40, 42));
        assert_eq!(misses(&handles, &selection(0, 3, 38)), 2);
        let reserved = avsg_load { reserved: 1, ..load };
        // SAFETY: the arrays of the struct are alive, and its `size` is set.
        let status = unsafe { avsg_engine_load(handles.engine, &reserved, handles.plan) };
        expect_error(status, AVSG_INVALID, &["reserved is 1"]);
        handles.destroy();
    });
}

/// A request takes a state and is forked after its prefill by append, before its first plan.
#[test]
fn a_fork_before_the_first_plan_has_nothing_of_an_earlier_request() {
    each_device(|device| {
        let handles = Handles::on(device);
        // The ids of the earlier request have other rows.
        let earlier = OwnedBatch { blocks: (0..8).rev().collect(), ..selection(0, 1, 20) };
        let mut prefill = OwnedBatch { ids: Vec::new(), ..selection(0, 2, 0) };
        (prefill.cu_q[1], prefill.stable[0], prefill.seq[0]) = (100, 0, 100);
        let (batch, rows) = (
            c_batch(&earlier),
            [0, 1].map(|layer| {
                let mut rows = FreshRows::new(&format(), 100);
                (0..100).for_each(|at| rows.put(at, at as i32, layer));
                rows
            }),
        );
        // SAFETY: `earlier`, `prefill` and `rows` own the arrays.
        unsafe {
            ok(avsg_engine_step(handles.engine, &batch, handles.plan, 0, null(), null_mut()));
            ok(avsg_engine_transfer(handles.engine, handles.plan, 1, null(), null_mut()));
            for (layer, rows) in rows.iter().enumerate() {
                let (batch, fresh) = (c_batch(&prefill), c_fresh(rows));
                ok(avsg_engine_append(handles.engine, &batch, layer, &fresh, null_mut()));
            }
        }
        ok(avsg_engine_fork(handles.engine, 0, 2, 1, 5));
        assert_eq!(misses(&handles, &selection(1, 5, 20)), K);
        assert_eq!(misses(&handles, &selection(0, 2, 20)), K);
        ok(avsg_engine_fork(handles.engine, 0, 2, 1, 6));
        assert_eq!(misses(&handles, &selection(1, 6, 20)), 0);
        let (mut words, mut count) = (null(), 0);
        // SAFETY: the out-pointers are local variables, and the table has a header.
        let generation = unsafe {
            ok(avsg_engine_get_table(handles.engine, 0, 1, &mut words, &mut count));
            words.read()
        };
        assert_eq!(generation, 6);
        handles.destroy();
    });
}

/// A load that is refused because a layer lacks rows keeps the plan that has them.
#[test]
fn a_refused_load_changes_nothing() {
    each_device(|device| {
        let handles = Handles::on(device);
        let (owned, mut other) = (selection(0, 1, 20), null_mut());
        let (batch, ids): (_, Vec<i32>) = (c_batch(&owned), (60..100).collect());
        let load = avsg_load {
            ids: avsg_i32s { data: ids.as_ptr(), len: ids.len() },
            block_table: batch.block_table,
            generation: 1,
            seq_len: 128,
            ..sized()
        };
        let stats = || {
            let mut stats: avsg_engine_stats = sized();
            // SAFETY: the struct has its `size` set.
            ok(unsafe { avsg_engine_get_stats(handles.engine, &mut stats) });
            (stats.plans, stats.transfers, stats.misses)
        };
        // SAFETY: the arrays are alive, and structs have their `size` set.
        unsafe {
            ok(avsg_plan_create(handles.engine, 1, 1, &mut other));
            ok(avsg_engine_step(handles.engine, &batch, handles.plan, 0, null(), null_mut()));
            for plan in [other, handles.plan] {
                let status = avsg_engine_load(handles.engine, &load, plan);
                expect_error(status, AVSG_INVALID, &["layer 1 lacks the rows of plan 1"]);
                assert_eq!(stats(), (1, 1, K as u64));
            }
            ok(avsg_engine_transfer(handles.engine, handles.plan, 1, null(), null_mut()));
            for layer in 0..2 {
                assert_eq!(handles.expect_exact(&owned, layer), K);
            }
            ok(avsg_engine_load(handles.engine, &load, other));
        }
        assert_eq!(misses(&handles, &selection(0, 1, 60)), 0);
        ok(avsg_plan_destroy(other));
        handles.destroy();
    });
}

#[test]
fn a_discarded_plan_is_missed_again_and_counted() {
    each_device(|device| {
        let handles = Handles::on(device);
        assert_eq!(misses(&handles, &selection(0, 1, 20)), K);
        let next = selection(0, 1, 24);
        // SAFETY: `next` owns the arrays.
        ok(unsafe { avsg_engine_plan(handles.engine, &c_batch(&next), handles.plan, null_mut()) });
        ok(avsg_engine_discard(handles.engine, handles.plan));
        expect_error(
            avsg_engine_discard(handles.engine, handles.plan),
            AVSG_INVALID,
            &["plan is empty"],
        );
        assert_eq!(misses(&handles, &next), 4);
        let mut stats: avsg_engine_stats = sized();
        // SAFETY: the struct has its `size` set.
        ok(unsafe { avsg_engine_get_stats(handles.engine, &mut stats) });
        let k = K as u64;
        assert_eq!((stats.plans, stats.transfers, stats.appends, stats.queued), (3, 4, 0, 0));
        assert_eq!((stats.misses, stats.hits), (k + 8, 2 * k - 8));
        assert_eq!(stats.transferred_bytes, 2 * (k + 4) * ROW as u64);
        assert!(stats.evictions <= 4, "the slots of the discarded plan may be given again");
        assert!(stats.plan_ns > 0 && stats.transfer_ns > 0 && stats.append_ns == 0);
        assert_eq!(stats.step_ns > 0, device != c"cpu");
        handles.destroy();
    });
}
