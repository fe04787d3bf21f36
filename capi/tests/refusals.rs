//! Misuse through C, on "cpu" and "ascend-sim": each call returns a status with a message and
//! changes nothing, so that the next step is exact.

#[path = "c_side/batches.rs"]
mod batches;
#[path = "c_side/misuse.rs"]
mod misuse;

use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicBool, Ordering};

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::*;

/// Asserts that a valid step succeeds and is exact.
fn expect_step_works(handles: &Handles, step: i32) {
    let owned = Arrays::new(step);
    ok(handles.step(&owned, 0));
    assert_eq!(handles.expect_exact(&owned, 0), 32);
}

#[test]
fn versions_devices_and_status_names_are_fixed() {
    assert_eq!(avsg_abi_version(), AVSG_ABI_VERSION);
    let text = |at: *const c_char| {
        // SAFETY: these functions return NUL-terminated strings that are valid for ever.
        unsafe { CStr::from_ptr(at) }.to_str().unwrap()
    };
    assert_eq!(text(avsg_version()), env!("CARGO_PKG_VERSION"));
    assert!(text(avsg_devices()).split(' ').any(|name| name == "cpu"));
    // A changed number would break programs that were compiled with an older header.
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
        "FORKED",
    ];
    for (code, name) in names.iter().enumerate() {
        assert_eq!(text(avsg_status_name(code as i32)), format!("AVSG_{name}"));
    }
    for code in [-1, names.len() as i32, i32::MIN, i32::MAX] {
        assert_eq!(text(avsg_status_name(code)), "unknown status");
    }
}

#[test]
fn stale_and_mistyped_handles_are_refused() {
    each_device(refuse_handles);
}

fn refuse_handles(device: &'static CStr) {
    let handles = Handles::on(device);
    let owned = Arrays::new(0);
    let (batch, fresh) = (owned.batch(), owned.fresh());
    let mut info: avsg_pool_info = sized();
    let refuse = |engine: *mut avsg_engine, plan, expected, part: &str| {
        // SAFETY: handles are looked up, and `owned` owns the arrays.
        unsafe {
            let status = avsg_engine_plan(engine, &batch, plan, null_mut());
            expect_error(status, expected, &[part]);
            let status = avsg_engine_step(engine, &batch, plan, 0, &fresh, null_mut());
            expect_error(status, expected, &[part]);
            let status = avsg_engine_transfer(engine, plan, 0, &fresh, null_mut());
            expect_error(status, expected, &[part]);
        }
    };
    refuse(null_mut(), handles.plan, AVSG_NULL, "engine is NULL");
    refuse(handles.engine, null_mut(), AVSG_NULL, "plan is NULL");
    refuse(handles.plan.cast(), handles.plan, AVSG_HANDLE, "another kind");
    refuse(handles.engine, handles.engine.cast(), AVSG_HANDLE, "another kind");
    refuse(without_provenance_mut(64), handles.plan, AVSG_HANDLE, "no handle");
    refuse((&raw const batch).cast_mut().cast(), handles.plan, AVSG_HANDLE, "no handle");
    // SAFETY: handles are looked up, `owned` owns the arrays, and the struct has its `size` set.
    unsafe {
        expect_error(avsg_pool_get_info(null(), &mut info), AVSG_NULL, &["pool is NULL"]);
        expect_error(
            avsg_pool_get_info(handles.engine.cast(), &mut info),
            AVSG_HANDLE,
            &["another kind"],
        );
        expect_error(
            avsg_engine_append(null_mut(), &batch, 0, &fresh, null_mut()),
            AVSG_NULL,
            &["engine is NULL"],
        );
    }
    expect_step_works(&handles, 1);
    let Handles { pool, engine, plan, context } = handles;
    // The engine keeps the pool's memory after the pool's handle is destroyed.
    ok(avsg_pool_destroy(pool));
    expect_error(
        avsg_pool_destroy(pool),
        AVSG_HANDLE,
        &["pool is", "it was destroyed", "from its create function"],
    );
    expect_step_works(&Handles { context, ..Handles::from_raw(pool, engine, plan) }, 2);
    ok(avsg_engine_destroy(engine));
    expect_error(avsg_engine_destroy(engine), AVSG_HANDLE, &["engine is", "destroyed"]);
    refuse(engine, plan, AVSG_HANDLE, "destroyed");
    // A plan can be read after its engine is destroyed.
    let mut counters: avsg_plan_counters = sized();
    // SAFETY: the struct has its `size` set.
    ok(unsafe { avsg_plan_get_counters(plan, &mut counters) });
    assert_eq!((counters.requests, counters.tokens, counters.selected), (2, 4, 32));
    assert_eq!(counters.hits + counters.misses, 32);
    ok(avsg_plan_destroy(plan));
    expect_error(avsg_plan_destroy(plan), AVSG_HANDLE, &["plan is", "destroyed"]);
    ok(avsg_plan_destroy(null_mut()));
    ok(avsg_engine_destroy(null_mut()));
    ok(avsg_pool_destroy(null_mut()));
}

#[test]
fn unknown_struct_sizes_are_refused() {
    each_device(refuse_struct_sizes);
}

#[test]
fn a_size_that_ends_inside_a_pointer_is_refused() {
    let (handles, indexers, mut engine) = (Handles::on_cpu(), [0, 0], null_mut());
    let mut config = engine_config();
    (config.layer_indexer, config.layer_indexers) = (indexers.as_ptr(), indexers.len());
    let whole = size_of::<avsg_engine_config>();
    for size in (88..whole).filter(|size| size % align_of::<usize>() != 0) {
        config.size = size;
        // SAFETY: the struct has more bytes than its `size`.
        let status = unsafe { avsg_engine_create(&config, handles.pool, &mut engine) };
        expect_error(status, AVSG_SIZE, &[&format!("size is {size}"), "sizeof"]);
    }
    handles.destroy();
}

fn refuse_struct_sizes(device: &'static CStr) {
    let handles = Handles::on(device);
    let mut engine = null_mut();
    for size in [0, 1, 87, 4097, usize::MAX] {
        let config = avsg_engine_config { size, ..config_on(device) };
        // SAFETY: a wrong `size` is refused before any other field is read.
        let status = unsafe { avsg_engine_create(&config, handles.pool, &mut engine) };
        let parts = [&format!("avsg_engine_config.size is {size}")[..], "sizeof"];
        expect_error(status, AVSG_SIZE, &parts);
        assert!(engine.is_null());
        let (mut info, mut counters) = (sized::<avsg_pool_info>(), sized::<avsg_plan_counters>());
        (info.size, counters.size) = (size.min(55), size.min(55));
        // SAFETY: a wrong `size` is refused before any other field is accessed.
        unsafe {
            expect_error(
                avsg_pool_get_info(handles.pool, &mut info),
                AVSG_SIZE,
                &["avsg_pool_info.size"],
            );
            expect_error(
                avsg_plan_get_counters(handles.plan, &mut counters),
                AVSG_SIZE,
                &["avsg_plan_counters"],
            );
        }
        let owned = Arrays::new(0);
        let batch = avsg_batch { size, ..owned.batch() };
        // SAFETY: a wrong `size` is refused before any other field is read.
        let status = unsafe { avsg_engine_plan(handles.engine, &batch, handles.plan, null_mut()) };
        expect_error(status, AVSG_SIZE, &["avsg_batch.size", "160 bytes"]);
    }
    // The struct of a later version is accepted if the fields that this version lacks are 0.
    #[repr(C)]
    struct Later {
        config: avsg_engine_config,
        field: u64,
    }
    let mut later = Later { config: config_on(device), field: 0 };
    later.config.size = size_of::<Later>();
    // SAFETY: the struct has as many bytes as its `size`.
    unsafe {
        ok(avsg_engine_create(&later.config, handles.pool, &mut engine));
        ok(avsg_engine_destroy(engine));
        later.field = 1;
        let status = avsg_engine_create(&later.config, handles.pool, &mut engine);
        expect_error(status, AVSG_SIZE, &["later field", "update libavsg"]);
    }
    expect_step_works(&handles, 1);
    handles.destroy();
}

#[test]
fn invalid_plans_buffers_tables_and_pages_are_refused() {
    each_device(refuse_plans_and_views);
}

fn refuse_plans_and_views(device: &'static CStr) {
    let (handles, other) = (Handles::on(device), Handles::on(device));
    // A page of this size divides a state into four.
    let page = config_on(device).slots as usize / 4;
    let (mut plan, mut buffer) = (null_mut(), sized::<avsg_buffer>());
    let owned = Arrays::new(0);
    let (batch, fresh) = (owned.batch(), owned.fresh());
    // SAFETY: the out-pointers are local variables, and the arrays have the stated lengths.
    unsafe {
        for rows in [0, (1 << 20) + 1, usize::MAX] {
            let status = avsg_plan_create(handles.engine, rows, 2, &mut plan);
            expect_error(status, AVSG_INVALID, &["max_tokens is", "1..=1048576"]);
            assert!(plan.is_null());
        }
        expect_error(
            avsg_plan_create(handles.engine, 4, 2, null_mut()),
            AVSG_NULL,
            &["plan is NULL"],
        );
        let status = avsg_engine_plan(handles.engine, &batch, other.plan, null_mut());
        expect_error(status, AVSG_INVALID, &["plan is foreign"]);
        ok(avsg_plan_create(handles.engine, 3, 2, &mut plan));
        let status = avsg_engine_step(handles.engine, &batch, plan, 0, &fresh, null_mut());
        expect_error(status, AVSG_INVALID, &["tokens is 4", "holds 3"]);
        ok(avsg_plan_destroy(plan));

        expect_error(
            avsg_engine_get_buffer(handles.engine, 2, 0, &mut buffer),
            AVSG_INVALID,
            &["layer is 2"],
        );
        expect_error(
            avsg_engine_get_buffer(handles.engine, 0, 2, &mut buffer),
            AVSG_INVALID,
            &["segment is 2"],
        );
        let mut arrays: avsg_plan_arrays = sized();
        let status = avsg_plan_get_arrays(handles.plan, 1, &mut arrays);
        expect_error(status, AVSG_INVALID, &["memory is 1", "AVSG_MEMORY_DEVICE (2)"]);
        let (mut words, mut count) = (null(), 0);
        ok(avsg_engine_get_table(handles.engine, 0, 1, &mut words, &mut count));
        assert!(!words.is_null() && count > 64);
        let status = avsg_engine_get_table(handles.engine, 0, 2, &mut words, &mut count);
        expect_error(status, AVSG_INVALID, &["state is 2"]);
        assert!(words.is_null() && count == 0);

        let states = [1, -1, 0];
        let (mut table, mut lengths) = ([9; 15], [9; 3]);
        let mut view = |page, stride| {
            let (t, l) = (table.as_mut_ptr(), lengths.as_mut_ptr());
            avsg_engine_get_block_table(handles.engine, states.as_ptr(), 3, page, t, stride, l)
        };
        expect_error(view(48, 5), AVSG_INVALID, &["page is 48", "divide the"]);
        expect_error(view(page, 3), AVSG_INVALID, &["capacity is 3", "there are 4 pages"]);
        ok(view(page, 5));
        assert_eq!(table, [4, 5, 6, 7, 9, -1, -1, -1, -1, 9, 0, 1, 2, 3, 9]);
        assert_eq!(lengths, [4 * page as i32, 0, 4 * page as i32]);
        let wrong = [0, 2];
        let status = avsg_engine_get_block_table(
            handles.engine,
            wrong.as_ptr(),
            2,
            page,
            table.as_mut_ptr(),
            4,
            lengths.as_mut_ptr(),
        );
        expect_error(status, AVSG_INVALID, &["state is", "there are 2"]);
    }
    handles.destroy();
    other.destroy();
}

#[test]
fn a_step_during_another_threads_step_is_refused_as_busy() {
    each_device(step_from_three_threads);
}

fn step_from_three_threads(device: &'static CStr) {
    let handles = Handles::on(device);
    let (engine, plan) = (handles.engine as usize, handles.plan as usize);
    let (stop, busy) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let thread_handles =
                    Handles::from_raw(null_mut(), engine as *mut _, plan as *mut _);
                let owned = Arrays::new(3);
                while !stop.load(Ordering::Relaxed) {
                    match thread_handles.step(&owned, 0) {
                        AVSG_OK => {}
                        status => {
                            expect_error(status, AVSG_BUSY, &["in use by another thread", "again"]);
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
    assert!(
        busy.load(Ordering::Relaxed),
        "no two of three threads used the engine at a time in 20 s"
    );
    // Any thread may call while no other does.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let thread_handles = Handles::from_raw(null_mut(), engine as *mut _, plan as *mut _);
            ok(thread_handles.step(&Arrays::new(5), 0));
        });
    });
    expect_step_works(&handles, 4);
    handles.destroy();
}
