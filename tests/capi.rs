//! Misuse through C: a code and a sentence each, nothing changed, and the next good step exact.

#[path = "capi/c.rs"]
mod c;

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicBool, Ordering};

use avsg::capi::avsg_status::*;
use avsg::capi::*;
use c::*;

/// A good step still works.
fn goes_on(life: &Life, step: i32) {
    let owned = Arrays::new(step);
    ok(life.step(&owned, 0));
    assert_eq!(life.expect_exact(&owned, 0), 32);
}

#[test]
fn versions_and_names() {
    assert_eq!(avsg_abi_version(), AVSG_ABI_VERSION);
    let text = |at: *const c_char| {
        // SAFETY: these functions return strings that are valid for ever.
        unsafe { CStr::from_ptr(at) }.to_str().unwrap()
    };
    assert_eq!(text(avsg_version()), env!("CARGO_PKG_VERSION"));
    assert!(text(avsg_devices()).split(' ').any(|name| name == "cpu"));
    // Numbers are for ever: a change here breaks programs.
    let names = [
        "OK",
        "INVALID",
        "NULL",
        "HANDLE",
        "SIZE",
        "BUSY",
        "UNSUPPORTED",
        "NO_MEMORY",
        "OS",
        "INTERNAL",
    ];
    for (code, name) in names.iter().enumerate() {
        assert_eq!(text(avsg_status_name(code as i32)), format!("AVSG_{name}"));
    }
    for code in [-1, names.len() as i32, i32::MIN, i32::MAX] {
        assert_eq!(text(avsg_status_name(code)), "unknown status");
    }
}

#[test]
fn handles() {
    let life = Life::new();
    let owned = Arrays::new(0);
    let (batch, fresh) = (owned.batch(), owned.fresh());
    let mut info: avsg_pool_info = sized();
    let stale = |handle: *mut avsg_engine, plan, want, part: &str| {
        // SAFETY: handles may be anything; everything else is good.
        unsafe {
            fails(avsg_engine_plan(handle, &batch, plan, null_mut()), want, &[part]);
            fails(avsg_engine_step(handle, &batch, plan, 0, &fresh, null_mut()), want, &[part]);
            fails(avsg_engine_transfer(handle, plan, 0, &fresh, null_mut()), want, &[part]);
        }
    };
    stale(null_mut(), life.plan, AVSG_NULL, "engine is NULL");
    stale(life.engine, null_mut(), AVSG_NULL, "plan is NULL");
    stale(life.plan.cast(), life.plan, AVSG_HANDLE, "another kind");
    stale(life.engine, life.engine.cast(), AVSG_HANDLE, "another kind");
    stale(without_provenance_mut(64), life.plan, AVSG_HANDLE, "no handle");
    stale((&raw const batch).cast_mut().cast(), life.plan, AVSG_HANDLE, "no handle");
    // SAFETY: as above.
    unsafe {
        fails(avsg_pool_get_info(null(), &mut info), AVSG_NULL, &["pool is NULL"]);
        fails(avsg_pool_get_info(life.engine.cast(), &mut info), AVSG_HANDLE, &["another kind"]);
        fails(
            avsg_engine_append(null_mut(), &batch, 0, &fresh, null_mut()),
            AVSG_NULL,
            &["engine is NULL"],
        );
    }
    goes_on(&life, 1);
    let Life { pool, engine, plan } = life;
    // The pool's handle may go first: the engine has its memory.
    ok(avsg_pool_destroy(pool));
    fails(avsg_pool_destroy(pool), AVSG_HANDLE, &["pool is", "destroyed", "before destroy"]);
    goes_on(&Life { pool, engine, plan }, 2);
    ok(avsg_engine_destroy(engine));
    fails(avsg_engine_destroy(engine), AVSG_HANDLE, &["engine is", "destroyed"]);
    stale(engine, plan, AVSG_HANDLE, "destroyed");
    // A plan's results outlive its engine.
    let mut counters: avsg_plan_counters = sized();
    // SAFETY: a struct with its size.
    ok(unsafe { avsg_plan_get_counters(plan, &mut counters) });
    assert_eq!((counters.requests, counters.rows, counters.selected), (2, 4, 32));
    assert_eq!(counters.hits + counters.misses, 32);
    ok(avsg_plan_destroy(plan));
    fails(avsg_plan_destroy(plan), AVSG_HANDLE, &["plan is", "destroyed"]);
    ok(avsg_plan_destroy(null_mut()));
    ok(avsg_engine_destroy(null_mut()));
    ok(avsg_pool_destroy(null_mut()));
}

#[test]
fn struct_sizes() {
    let life = Life::new();
    let mut engine = null_mut();
    for size in [0, 1, 87, 4097, usize::MAX] {
        let config = avsg_engine_config { size, ..engine_config() };
        // SAFETY: a size that is wrong is refused before anything else is read.
        let status = unsafe { avsg_engine_create(&config, life.pool, &mut engine) };
        let parts = [&format!("avsg_engine_config.size is {size}")[..], "sizeof"];
        fails(status, AVSG_SIZE, &parts);
        assert!(engine.is_null());
        let (mut info, mut counters) = (sized::<avsg_pool_info>(), sized::<avsg_plan_counters>());
        (info.size, counters.size) = (size.min(55), size.min(55));
        // SAFETY: as above.
        unsafe {
            fails(avsg_pool_get_info(life.pool, &mut info), AVSG_SIZE, &["avsg_pool_info.size"]);
            fails(
                avsg_plan_get_counters(life.plan, &mut counters),
                AVSG_SIZE,
                &["avsg_plan_counters"],
            );
        }
        let owned = Arrays::new(0);
        let batch = avsg_batch { size, ..owned.batch() };
        // SAFETY: as above.
        let status = unsafe { avsg_engine_plan(life.engine, &batch, life.plan, null_mut()) };
        fails(status, AVSG_SIZE, &["avsg_batch.size", "144 bytes"]);
    }
    // A program of a later version: fine as long as it asks for nothing that is not known here.
    #[repr(C)]
    struct Later {
        config: avsg_engine_config,
        field: u64,
    }
    let mut later = Later { config: engine_config(), field: 0 };
    later.config.size = size_of::<Later>();
    // SAFETY: the struct has the bytes that it says.
    unsafe {
        ok(avsg_engine_create(&later.config, life.pool, &mut engine));
        ok(avsg_engine_destroy(engine));
        later.field = 1;
        let status = avsg_engine_create(&later.config, life.pool, &mut engine);
        fails(status, AVSG_SIZE, &["later field", "update libavsg"]);
    }
    goes_on(&life, 1);
    life.end();
}

#[test]
fn batches() {
    let life = Life::new();
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
        fails(status, AVSG_UNSUPPORTED, &["stream is 0x10", "pass NULL"]);
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

#[test]
fn plans_and_views() {
    let (life, other) = (Life::new(), Life::new());
    let (mut plan, mut buffer) = (null_mut(), sized::<avsg_buffer>());
    let owned = Arrays::new(0);
    let (batch, fresh) = (owned.batch(), owned.fresh());
    // SAFETY: places for results, arrays of the stated lengths.
    unsafe {
        for rows in [0, (1 << 20) + 1, usize::MAX] {
            let status = avsg_plan_create(life.engine, rows, 2, &mut plan);
            fails(status, AVSG_INVALID, &["plan rows is", "1..=1048576"]);
            assert!(plan.is_null());
        }
        fails(avsg_plan_create(life.engine, 4, 2, null_mut()), AVSG_NULL, &["plan is NULL"]);
        let status = avsg_engine_plan(life.engine, &batch, other.plan, null_mut());
        fails(status, AVSG_INVALID, &["plan is foreign"]);
        ok(avsg_plan_create(life.engine, 3, 2, &mut plan));
        let status = avsg_engine_step(life.engine, &batch, plan, 0, &fresh, null_mut());
        fails(status, AVSG_INVALID, &["rows is 4", "holds 3"]);
        ok(avsg_plan_destroy(plan));

        fails(avsg_engine_buffer(life.engine, 2, 0, &mut buffer), AVSG_INVALID, &["layer is 2"]);
        fails(avsg_engine_buffer(life.engine, 0, 2, &mut buffer), AVSG_INVALID, &["segment is 2"]);
        let (mut words, mut count) = (null(), 0);
        ok(avsg_engine_table(life.engine, 1, &mut words, &mut count));
        assert!(!words.is_null() && count > 64);
        let status = avsg_engine_table(life.engine, 2, &mut words, &mut count);
        fails(status, AVSG_INVALID, &["state is 2"]);
        assert!(words.is_null() && count == 0);

        let states = [1, -1, 0];
        let (mut table, mut lengths) = ([9; 15], [9; 3]);
        let mut view = |page, stride| {
            let (t, l) = (table.as_mut_ptr(), lengths.as_mut_ptr());
            avsg_engine_block_table(life.engine, states.as_ptr(), 3, page, t, stride, l)
        };
        fails(view(48, 5), AVSG_INVALID, &["page is 48", "divide the 64 slots"]);
        fails(view(16, 3), AVSG_INVALID, &["capacity is 3", "there are 4 pages"]);
        ok(view(16, 5));
        assert_eq!(table, [4, 5, 6, 7, 9, -1, -1, -1, -1, 9, 0, 1, 2, 3, 9]);
        assert_eq!(lengths, [64, 0, 64]);
        let wrong = [0, 2];
        let status = avsg_engine_block_table(
            life.engine,
            wrong.as_ptr(),
            2,
            16,
            table.as_mut_ptr(),
            4,
            lengths.as_mut_ptr(),
        );
        fails(status, AVSG_INVALID, &["state is", "there are 2"]);
    }
    life.end();
    other.end();
}

/// A second thread in the same engine or plan is refused at once, whatever it calls.
#[test]
fn a_step_during_a_step_is_busy() {
    let life = Life::new();
    let (engine, plan) = (life.engine as usize, life.plan as usize);
    let (stop, busy) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let own = Life { pool: null_mut(), engine: engine as *mut _, plan: plan as *mut _ };
                let owned = Arrays::new(3);
                while !stop.load(Ordering::Relaxed) {
                    match own.step(&owned, 0) {
                        AVSG_OK => {}
                        status => {
                            fails(status, AVSG_BUSY, &["in use by another thread", "again"]);
                            busy.store(true, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !busy.load(Ordering::Relaxed) && std::time::Instant::now() < end {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(busy.load(Ordering::Relaxed), "three threads in one engine have met");
    goes_on(&life, 4);
    life.end();
}
