//! A child that was forked from a process with handles: every call on them answers AVSG_FORKED at
//! once and changes nothing, and a pool that is imported by its descriptor works.

use std::os::fd::AsRawFd;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::*;
use avsg_testkit::{alone, in_child};

#[test]
fn a_child_is_refused_at_once_and_can_import_the_pool() {
    let _turn = alone::turn();
    // Two threads, of which the child has one.
    let (of_workers, mut workers) = (avsg_workers_config { threads: 2, ..sized() }, null_mut());
    // SAFETY: the struct has its `size` set.
    ok(unsafe { avsg_workers_create(&of_workers, &mut workers) });
    let handles =
        Handles::create(&pool_config(), &avsg_engine_config { workers, ..engine_config() });
    let Handles { pool, engine, plan, .. } = handles;
    let (desc, file) = super::share::export(pool);
    let owned = Arrays::new(0);
    ok(handles.step(&owned, 0));
    assert_eq!(handles.expect_exact(&owned, 0), 32);

    in_child!(|| {
        let mut bytes = [7u8; ROW];
        let (batch, fresh) = (owned.batch(), owned.fresh());
        // SAFETY: handles are looked up, structs have their `size` set, and `owned` owns the arrays.
        let refused = unsafe {
            [
                avsg_engine_step(engine, &batch, plan, 0, &fresh, null_mut()),
                avsg_engine_plan(engine, &batch, plan, null_mut()),
                avsg_engine_transfer(engine, plan, &0, 1, &fresh, null_mut()),
                avsg_engine_begin(engine, plan, &0, 1, &fresh, null_mut()),
                avsg_engine_wait(engine, plan),
                avsg_engine_test(engine, plan, &mut 0),
                avsg_engine_append(engine, &batch, &0, 1, &fresh, null_mut()),
                avsg_engine_invalidate(engine, 0, 0, 1),
                avsg_engine_load(engine, &sized(), plan),
                avsg_engine_fork(engine, 0, 1, &1, &9, 1),
                avsg_engine_discard(engine, plan),
                avsg_engine_get_stats(engine, &mut sized()),
                avsg_engine_get_used_slots(engine, 0, [0; 8].as_mut_ptr(), 8),
                avsg_plan_create(engine, 4, 2, &mut null_mut()),
                avsg_plan_get_counters(plan, &mut sized()),
                avsg_pool_write_row(pool, 0, 3, bytes.as_ptr().cast(), ROW),
                avsg_pool_read_row(pool, 0, 3, bytes.as_mut_ptr().cast(), ROW),
                avsg_pool_get_info(pool, &mut sized()),
                avsg_pool_demote(pool),
                avsg_plan_destroy(plan),
                avsg_engine_destroy(engine),
                avsg_workers_destroy(workers),
                avsg_pool_destroy(pool),
            ]
        };
        let all = refused.iter().all(|&status| status == AVSG_FORKED);
        let explained = last_error().contains("import the pool by its descriptor");

        // The supported way: an engine of its own on an imported pool.
        let mut own = Handles::from_raw(null_mut(), null_mut(), null_mut());
        let own_config = avsg_engine_config { cores: 2, ..engine_config() };
        // SAFETY: handles are looked up, structs have their `size` set, and the descriptor is open.
        let imported = unsafe {
            [
                avsg_pool_import(desc.as_ptr(), desc.len(), file.as_raw_fd(), 0, &mut own.pool),
                avsg_engine_create(&own_config, own.pool, &mut own.engine),
                avsg_plan_create(own.engine, 4, 2, &mut own.plan),
                avsg_pool_read_row(own.pool, 1, 5, bytes.as_mut_ptr().cast(), ROW),
            ]
        };
        let works = own.step(&owned, 0) == AVSG_OK && own.expect_exact(&owned, 0) == 32;
        let imported = imported.iter().all(|&status| status == AVSG_OK) && bytes == row(1, 5);
        all && explained && works && imported
    });

    let mut bytes = [0u8; ROW];
    // SAFETY: the handle is looked up, and the array has the length beside it.
    ok(unsafe { avsg_pool_read_row(pool, 0, 3, bytes.as_mut_ptr().cast(), ROW) });
    assert_eq!(bytes, row(0, 3), "the child changed nothing");
    let next = Arrays::new(1);
    ok(handles.step(&next, 0));
    assert_eq!(handles.expect_exact(&next, 0), 32);
    drop(handles);
    ok(avsg_workers_destroy(workers));
}

#[test]
fn handles_that_are_in_use_are_refused_in_a_child_too() {
    let _turn = alone::turn();
    // A thread is inside calls on the pool while the process forks.
    let mut pool = null_mut();
    // SAFETY: the struct has its `size` set.
    ok(unsafe { avsg_pool_create(&pool_config(), &mut pool) });
    let (stop, shared) = (AtomicBool::new(false), pool as usize);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let pool = std::ptr::without_provenance_mut(shared);
            while !stop.load(Ordering::Relaxed) {
                // SAFETY: the struct has its `size` set.
                let _: avsg_pool_info = filled(|to| unsafe { avsg_pool_get_info(pool, to) });
            }
        });
        for _ in 0..20 {
            in_child!(|| {
                // SAFETY: the handle is looked up; a NULL array of this length is refused.
                let write = unsafe { avsg_pool_write_row(pool, 0, 0, null(), ROW) };
                write == AVSG_FORKED && avsg_pool_destroy(pool) == AVSG_FORKED
            });
        }
        stop.store(true, Ordering::Relaxed);
    });
    ok(avsg_pool_destroy(pool));
}
