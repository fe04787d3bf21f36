//! Appends, and what a discard and the engine's counters give, through C. That loads, forks and invalidations reach the
//! state that they name, and that global slots are those of misses, is checked by the random calls of `fuzz`.

use std::ptr::{null, null_mut};

use avsg_capi::avsg_status::AVSG_INVALID;
use avsg_capi::*;
use avsg_capi_testkit::*;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::fresh::FreshRows;

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
