//! Changes of a state between steps through C: a load, forks, an invalidation and a discard reach the
//! engine with their arguments, and what a state holds and the engine's counters are given.

use std::ptr::{null, null_mut};

use avsg_capi::avsg_status::AVSG_INVALID;
use avsg_capi::*;
use avsg_capi_testkit::*;
use avsg_testkit::batch::OwnedBatch;

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
        ok(avsg_engine_transfer(handles.engine, handles.plan, &1, 1, null(), null_mut()));
        ok(avsg_plan_get_counters(handles.plan, &mut counters));
    }
    for layer in 0..2 {
        assert_eq!(handles.expect_exact(owned, layer), K);
    }
    counters.misses
}

/// Returns the ids from 10 to 119 that a state holds.
fn held(handles: &Handles, state: usize, generation: i32) -> Vec<i32> {
    let mut bits = [u64::MAX; 2];
    let (at, words) = (bits.as_mut_ptr(), bits.len());
    // SAFETY: the array has two words.
    ok(unsafe { avsg_engine_get_held(handles.engine, 0, state, generation, 10, 120, at, words) });
    (0..110).filter(|at| bits[at / 64] >> (at % 64) & 1 == 1).map(|at| at as i32 + 10).collect()
}

#[test]
fn loaded_forked_and_invalidated_states_hit_what_they_have() {
    let handles = Handles::on_cpu();
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
    // SAFETY: the arrays of the structs are alive, and their `size` is set.
    unsafe {
        ok(avsg_engine_load(handles.engine, &load, handles.plan));
        for (bad, part) in [
            (avsg_load { reserved: 1, ..load }, "reserved is 1"),
            (avsg_load { state: 2, ..load }, "state is 2"),
            (avsg_load { indexer: 1, ..load }, "indexer is 1"),
            (avsg_load { seq_len: -1, ..load }, "seq_len is -1"),
        ] {
            let status = avsg_engine_load(handles.engine, &bad, handles.plan);
            expect_error(status, AVSG_INVALID, &[part]);
        }
    }
    assert_eq!(misses(&handles, &selection(0, 3, 20)), 0);
    assert_eq!(misses(&handles, &selection(0, 3, 38)), K - 2);
    let fork = |from, from_generation, to: i32, generation: i32| {
        // SAFETY: each list has one element.
        unsafe { avsg_engine_fork(handles.engine, from, from_generation, &to, &generation, 1) }
    };
    ok(fork(0, 3, 1, 5));
    assert_eq!(misses(&handles, &selection(1, 5, 38)), 0);
    assert_eq!(misses(&handles, &selection(1, 6, 38)), K);
    assert_eq!(misses(&handles, &selection(0, 3, 38)), 0);
    let held = |state, generation| held(&handles, state, generation);
    let (all, none): (Vec<i32>, Vec<i32>) = ((10..46).collect(), Vec::new());
    assert_eq!((held(0, 3), held(0, 4), held(1, 5)), (all.clone(), none.clone(), none));
    // SAFETY: the arrays have an element.
    unsafe {
        ok(fork(0, 3, 1, 8));
        ok(avsg_engine_fork(handles.engine, 0, 3, null(), null(), 0));
        let (to, generations) = ([1, 1].as_ptr(), [8, 9].as_ptr());
        let status = avsg_engine_fork(handles.engine, 0, 3, to, generations, 2);
        expect_error(status, AVSG_INVALID, &["state is 1, but the list names it twice"]);
    }
    assert_eq!(held(1, 8), all);
    assert_eq!(misses(&handles, &selection(1, 8, 38)), 0);
    assert_eq!(misses(&handles, &selection(1, 6, 38)), K);
    let status = fork(1, 6, 1, 5);
    expect_error(status, AVSG_INVALID, &["state is 1", "another one"]);
    ok(avsg_engine_invalidate(handles.engine, 0, 40, 42));
    assert_eq!(misses(&handles, &selection(1, 6, 38)), 0, "another state keeps its slots");
    assert_eq!(misses(&handles, &selection(0, 3, 38)), 2);
    handles.destroy();
}

#[test]
fn a_later_token_misses_a_held_id_that_an_earlier_one_has_evicted() {
    let handles = Handles::on_cpu();
    (0..8).for_each(|step| assert_eq!(misses(&handles, &selection(0, 1, 10 + 8 * step)), K));
    // What the ids from 74 on evict is seen in a copy of the state.
    // SAFETY: each list has one element.
    ok(unsafe { avsg_engine_fork(handles.engine, 0, 1, &1, &2, 1) });
    assert_eq!(misses(&handles, &selection(1, 2, 74)), K);
    let (before, after) = (held(&handles, 0, 1), held(&handles, 1, 2));
    let mut evicted: Vec<i32> = before.into_iter().filter(|id| !after.contains(id)).collect();
    evicted.truncate(K);
    assert!(!evicted.is_empty());
    let mut owned = selection(0, 1, 74);
    let second = evicted.iter().copied().chain([-1; K]).take(K);
    owned.ids.extend(second);
    owned.cu_q[1] = 2;
    let batch = c_batch(&owned);
    // SAFETY: `owned` owns the arrays.
    ok(unsafe { avsg_engine_step(handles.engine, &batch, handles.plan, 0, null(), null_mut()) });
    let missed = missed(handles.plan, 0, true);
    assert_eq!(missed[..K], (74..74 + K as i32).collect::<Vec<_>>());
    assert_eq!(missed[K..], evicted);
    handles.destroy();
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
        let again = avsg_engine_discard(handles.engine, handles.plan);
        expect_error(again, AVSG_INVALID, &["plan is empty"]);
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
        let owned = Arrays::new(0);
        ok(handles.append(&owned, &owned.rows, 0));
        // SAFETY: as above.
        ok(unsafe { avsg_engine_get_stats(handles.engine, &mut stats) });
        assert_eq!((stats.appends, stats.appended_bytes), (1, 2 * ROW as u64));
        assert!(stats.append_ns > 0);
        handles.destroy();
    });
}
