//! Misuse through C: a code and a sentence each, nothing changed, and the next good step exact. On the CPU
//! and on the simulated Ascend.

#[path = "c_side/batches.rs"]
mod batches;
#[path = "c_side/c.rs"]
mod c;
#[path = "c_side/misuse.rs"]
mod misuse;

use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicBool, Ordering};

use avsg_capi::avsg_status::*;
use avsg_capi::*;
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
        "DEVICE",
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
    each_device(handles_on);
}

fn handles_on(device: &'static CStr) {
    let life = Life::on(device);
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
    let Life { pool, engine, plan, context } = life;
    // The pool's handle may go first: the engine has its memory.
    ok(avsg_pool_destroy(pool));
    fails(avsg_pool_destroy(pool), AVSG_HANDLE, &["pool is", "destroyed", "before destroy"]);
    goes_on(&Life { context, ..Life::of(pool, engine, plan) }, 2);
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
    each_device(struct_sizes_on);
}

fn struct_sizes_on(device: &'static CStr) {
    let life = Life::on(device);
    let mut engine = null_mut();
    for size in [0, 1, 87, 4097, usize::MAX] {
        let config = avsg_engine_config { size, ..config_on(device) };
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
    let mut later = Later { config: config_on(device), field: 0 };
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
fn plans_and_views() {
    each_device(plans_and_views_on);
}

fn plans_and_views_on(device: &'static CStr) {
    let (life, other) = (Life::on(device), Life::on(device));
    // Four pages a state.
    let page = config_on(device).slots as usize / 4;
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
        fails(view(48, 5), AVSG_INVALID, &["page is 48", "divide the"]);
        fails(view(page, 3), AVSG_INVALID, &["capacity is 3", "there are 4 pages"]);
        ok(view(page, 5));
        assert_eq!(table, [4, 5, 6, 7, 9, -1, -1, -1, -1, 9, 0, 1, 2, 3, 9]);
        assert_eq!(lengths, [4 * page as i32, 0, 4 * page as i32]);
        let wrong = [0, 2];
        let status = avsg_engine_block_table(
            life.engine,
            wrong.as_ptr(),
            2,
            page,
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
    each_device(busy_on);
}

fn busy_on(device: &'static CStr) {
    let life = Life::on(device);
    let (engine, plan) = (life.engine as usize, life.plan as usize);
    let (stop, busy) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let own = Life::of(null_mut(), engine as *mut _, plan as *mut _);
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
    // In turns, any thread may call.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let own = Life::of(null_mut(), engine as *mut _, plan as *mut _);
            ok(own.step(&Arrays::new(5), 0));
        });
    });
    goes_on(&life, 4);
    life.end();
}
