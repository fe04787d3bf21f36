//! Changes of a state between steps through C: a load, forks, an invalidation and a discard reach the
//! engine with their arguments, and what a state holds and the engine's counters are given.

use std::ptr::{null, null_mut};

use avsg_capi::avsg_status::AVSG_INVALID;
use avsg_capi::*;
use avsg_capi_testkit::*;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::fresh::FreshRows;

/// Returns the ids from 10 to 119 that a state holds.
fn held(handles: &Handles, state: usize, generation: i32) -> Vec<i32> {
    let mut bits = [u64::MAX; 2];
    let (at, words) = (bits.as_mut_ptr(), bits.len());
    // SAFETY: the array has two words.
    ok(unsafe { avsg_engine_get_held(handles.engine, 0, state, generation, 10, 120, at, words) });
    (0..110).filter(|at| bits[at / 64] >> (at % 64) & 1 == 1).map(|at| at as i32 + 10).collect()
}

#[test]
fn a_load_a_fork_and_an_invalidation_reach_the_state_that_they_name() {
    let handles = Handles::on_cpu();
    let (ids, blocks): (Vec<i32>, Vec<i32>) = ((10..40).collect(), (0..8).collect());
    let array = |words: &[i32]| avsg_i32s { data: words.as_ptr(), len: words.len() };
    let mut load: avsg_load = sized();
    (load.ids, load.block_table) = (array(&ids), array(&blocks));
    (load.state, load.generation, load.seq_len) = (1, 3, 128);
    // SAFETY: the arrays of the struct are alive and its `size` is set, and each list has one element or
    // none.
    unsafe {
        for (bad, part) in [
            (avsg_load { reserved: 1, ..load }, "reserved is 1"),
            (avsg_load { state: 2, ..load }, "state is 2"),
            (avsg_load { indexer: 1, ..load }, "indexer is 1"),
            (avsg_load { seq_len: -1, ..load }, "seq_len is -1"),
        ] {
            let status = avsg_engine_load(handles.engine, &bad, handles.plan);
            expect_error(status, AVSG_INVALID, &[part]);
        }
        ok(avsg_engine_load(handles.engine, &load, handles.plan));
        ok(avsg_engine_fork(handles.engine, 1, 3, &0, &5, 1));
        ok(avsg_engine_fork(handles.engine, 1, 3, null(), null(), 0));
    }
    ok(avsg_engine_invalidate(handles.engine, 1, 12, 15));
    ok(avsg_engine_invalidate(handles.engine, 1, 100, 1 << 24));
    for (first, end) in [(12, 12), (12, (1 << 24) + 1), (12, usize::MAX)] {
        let status = avsg_engine_invalidate(handles.engine, 1, first, end);
        expect_error(status, AVSG_INVALID, &["16777216"]);
    }
    let left: Vec<i32> = [10, 11].into_iter().chain(15..40).collect();
    assert_eq!([held(&handles, 1, 3), held(&handles, 0, 5)], [left, ids]);
    assert!(held(&handles, 1, 5).is_empty() && held(&handles, 0, 3).is_empty());
    handles.destroy();
}

#[test]
fn a_miss_has_a_slot_of_its_state_and_at_its_position_a_global_one() {
    each_device(|device| {
        let config = config_on(device);
        let config = avsg_engine_config { states: 3, global_slots: 1, slot_base: 1000, ..config };
        let mut handles = Handles::create(&pool_config(), &config);
        ok(avsg_plan_destroy(handles.plan));
        let (blocks, states) = ((0..24).map(|block| block % 8).collect(), [2, 0, 1]);
        let mut owned = OwnedBatch { blocks, block_stride: 8, ..OwnedBatch::new(K, 0) };
        let ids = |from: i32| (from..from + K as i32).collect::<Vec<_>>();
        states.iter().for_each(|&t| owned.push([t, 1, -1, 128], &[ids(30 * t), ids(30 * t + 5)]));
        // SAFETY: `owned` owns the arrays, and the structs have their `size` set.
        let out = unsafe {
            ok(avsg_plan_create(handles.engine, 6, 3, &mut handles.plan));
            let (engine, plan, batch) = (handles.engine, handles.plan, c_batch(&owned));
            ok(avsg_engine_step(engine, &batch, plan, 1, null(), null_mut()));
            filled(|to| avsg_plan_get_arrays(plan, HOST, to))
        };
        let mut bytes = [0; ROW];
        for (request, state) in states.into_iter().enumerate() {
            let missed = missed(handles.plan, request, true);
            assert_eq!(missed, [ids(30 * state), ids(30 * state + 8)[..5].to_vec()].concat());
            for (j, id) in missed.into_iter().enumerate() {
                let first = 2 * request * K;
                // SAFETY: the plan holds the request, which has this miss.
                let (of_state, global) = unsafe {
                    let position = out.miss_position.add(first + j).read() as usize;
                    (out.miss_slot.add(first + j).read(), out.slot.add(first + position).read())
                };
                assert_eq!(global, 1000 + state * config.slots as i32 + of_state);
                for (state, slot) in [(state, of_state), (0, global - 1000)] {
                    handles.read_slot(state as usize, 1, slot as usize, &mut bytes);
                    assert_eq!(bytes, row(1, id as usize));
                }
            }
        }
        handles.destroy();
    });
}

/// Plans a batch of one request, transfers it to the layer of its indexer, and returns the number of its misses.
fn misses(handles: &Handles, indexer: usize, generation: i32, ids: [i32; K]) -> usize {
    let mut owned = OwnedBatch { block_stride: 8, indexer, ..OwnedBatch::new(K, 0) };
    owned.push([1, generation, -1, 128], &[ids.to_vec()]);
    owned.blocks = (0..8).collect();
    // SAFETY: `owned` owns the arrays.
    ok(unsafe { avsg_engine_plan(handles.engine, &c_batch(&owned), handles.plan, null_mut()) });
    // SAFETY: the list has one layer.
    ok(unsafe {
        avsg_engine_transfer(handles.engine, handles.plan, &indexer, 1, null(), null_mut())
    });
    missed(handles.plan, 0, true).len()
}

#[test]
fn a_repeated_id_takes_slots_and_a_generation_of_before_finds_only_what_no_plan_emptied() {
    let mut config = engine_config();
    (config.layer_indexer, config.layer_indexers) = ([0, 1].as_ptr(), 2);
    let handles = Handles::create(&pool_config(), &config);
    let ids = [3, 1, 4, 15, 9, 2, 6, 5];
    let plans = [(0, 7), (1, 7), (0, 7), (0, 8), (0, 7), (1, 7)];
    let found = plans.map(|(indexer, generation)| misses(&handles, indexer, generation, ids));
    assert_eq!(found, [8, 8, 0, 8, 8, 0]);
    assert_eq!(misses(&handles, 0, 9, [5; K]), K);
    assert_eq!(misses(&handles, 0, 10, [5, 5, 5, -1, -1, -1, -1, -1]), 3);
    handles.destroy();
}

#[test]
fn an_append_ignores_ids_and_generations_and_of_two_rows_in_one_place_the_later_stays() {
    let handles = Handles::on_cpu();
    let mut owned = OwnedBatch { block_stride: 8, ..OwnedBatch::new(K, 0) };
    for state in [1, 0] {
        // More tokens than N_q.
        owned.push([state, -5, 100, 103], &vec![vec![-1; K]; 3]);
    }
    owned.blocks = (0..16).map(|block| block % 8).collect();
    let mut rows = FreshRows::new(&format(), 6);
    (0..6).for_each(|token| rows.put(token, 200 + token as i32, 0));
    let none = avsg_i32s { data: null(), len: 0 };
    let batch = avsg_batch { ids: none, ids_stride: 0, k: 0, indexer: 9, ..c_batch(&owned) };
    // SAFETY: `owned` and `rows` own the arrays.
    ok(unsafe { avsg_engine_append(handles.engine, &batch, &0, 1, &c_fresh(&rows), null_mut()) });
    for at in 0..3 {
        let mut read = [0; ROW];
        // SAFETY: the array has the length beside it.
        ok(unsafe { avsg_pool_read_row(handles.pool, 0, 100 + at, read.as_mut_ptr().cast(), ROW) });
        assert_eq!(read, row(0, 203 + at));
    }
    handles.destroy();
}

#[test]
fn a_discarded_plan_is_missed_again_and_counted() {
    each_device(|device| {
        let handles = Handles::on(device);
        let Handles { engine, plan, .. } = handles;
        let (first, next) = (Arrays::new(0), Arrays::new(9));
        let counted = || {
            // SAFETY: the struct has its `size` set.
            let counters = filled(|to| unsafe { avsg_plan_get_counters(plan, to) });
            [counters.misses as u64, counters.hits as u64, counters.number]
        };
        // SAFETY: the struct has its `size` set.
        let stats = || filled(|to| unsafe { avsg_engine_get_stats(engine, to) });
        ok(handles.step(&first, 0));
        // SAFETY: the list has one element, and `first` owns the fresh rows.
        ok(unsafe { avsg_engine_transfer(engine, plan, &1, 1, &first.fresh(), null_mut()) });
        let [misses, hits, _] = counted();
        // SAFETY: `next` owns the arrays.
        ok(unsafe { avsg_engine_plan(engine, &next.batch(), plan, null_mut()) });
        let discarded = counted();
        ok(avsg_engine_discard(engine, plan));
        expect_error(avsg_engine_discard(engine, plan), AVSG_INVALID, &["plan is empty"]);
        ok(handles.step(&next, 0));
        assert_eq!(handles.expect_exact(&next, 0), 4 * K);
        assert_eq!(counted(), [discarded[0], discarded[1], 3]);
        assert!(discarded[0] > 0);
        let found = stats();
        assert_eq!((found.plans, found.transfers, found.appends, found.queued), (3, 3, 0, 0));
        let expected = [misses + 2 * discarded[0], hits + 2 * discarded[1]];
        assert_eq!([found.misses, found.hits], expected);
        assert_eq!(found.transferred_bytes, (2 * misses + discarded[0]) * ROW as u64);
        assert!(found.evictions <= discarded[0], "{} evictions", found.evictions);
        assert!(found.plan_ns > 0 && found.transfer_ns > 0 && found.append_ns == 0);
        assert_eq!(found.step_ns > 0, device != c"cpu");
        ok(handles.append(&first, &first.rows, 0));
        let found = stats();
        assert_eq!((found.appends, found.appended_bytes), (1, 2 * ROW as u64));
        assert!(found.append_ns > 0);
        handles.destroy();
    });
}

#[test]
fn a_plan_that_is_overwritten_or_destroyed_before_its_transfer_blocks_no_state() {
    each_device(|device| {
        let mut handles = Handles::on(device);
        let Handles { engine, plan, .. } = handles;
        let (first, next) = (Arrays::new(0), Arrays::new(9));
        // SAFETY: the arrays own what their structs point to, and `other` is a local variable.
        let plan_into = |plan, arrays: &Arrays| unsafe {
            avsg_engine_plan(engine, &arrays.batch(), plan, null_mut())
        };
        // SAFETY: as above; the list has one element.
        let transfer = |plan, arrays: &Arrays, layer: usize| unsafe {
            avsg_engine_transfer(engine, plan, &layer, 1, &arrays.fresh(), null_mut())
        };
        let mut other = null_mut();
        // SAFETY: as above.
        ok(unsafe { avsg_plan_create(engine, 4, 2, &mut other) });
        ok(plan_into(plan, &first));
        ok(plan_into(plan, &next));
        for layer in 0..2 {
            ok(transfer(plan, &next, layer));
            assert_eq!(handles.expect_exact(&next, layer), 4 * K);
        }
        // A newer plan needs the rows of the one before, and then neither is lost with the older one.
        ok(plan_into(plan, &first));
        ok(plan_into(other, &next));
        let parts = ["plan number is 3, but no layer has its rows, and plan 4 of state"];
        expect_error(plan_into(plan, &next), AVSG_INVALID, &parts);
        ok(avsg_plan_destroy(plan));
        ok(plan_into(other, &next));
        handles.plan = other;
        for layer in 0..2 {
            ok(transfer(other, &next, layer));
            assert_eq!(handles.expect_exact(&next, layer), 4 * K);
        }
        // What one layer has is not discarded, and the refusal names the other one.
        ok(plan_into(other, &first));
        ok(transfer(other, &first, 1));
        ok(plan_into(other, &next));
        let parts = ["layers [0] lack the rows of plan 6 for states [0, 1]"];
        expect_error(transfer(other, &next, 0), AVSG_INVALID, &parts);
        handles.destroy();
    });
}
