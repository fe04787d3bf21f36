//! What an embedder decides through C: the threads of launches, and where messages go.

use std::ffi::{CStr, c_char, c_void};
use std::process::Command;
use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::*;
use avsg_testkit::batch::OwnedBatch;

fn workers(config: &avsg_workers_config) -> *mut avsg_workers {
    let mut workers = null_mut();
    // SAFETY: the struct has its `size` set, and its pointers are valid.
    ok(unsafe { avsg_workers_create(config, &mut workers) });
    workers
}

fn workers_config(threads: u32) -> avsg_workers_config {
    avsg_workers_config { threads, ..sized() }
}

/// Ids per token, requests, and bytes of a row, with which a step is long enough to be shared by threads.
const K: usize = 64;
const REQUESTS: usize = 8;
const BYTES: usize = 12_000;

/// Makes a pool, an engine with `config`, and a plan.
fn create(mut config: avsg_engine_config) -> Handles {
    let mut pool_config = avsg_pool_config { layers: 1, rows: 512, segments: 1, ..sized() };
    pool_config.segment_bytes[0] = BYTES;
    (config.k, config.tokens, config.slots, config.page) = (K as u32, 1, 128, 0);
    config.states = REQUESTS;
    let mut handles = Handles::from_raw(null_mut(), null_mut(), null_mut());
    // SAFETY: handles are looked up, and structs have their `size` set.
    unsafe {
        ok(avsg_pool_create(&pool_config, &mut handles.pool));
        ok(avsg_engine_create(&config, handles.pool, &mut handles.engine));
        ok(avsg_plan_create(handles.engine, REQUESTS, REQUESTS, &mut handles.plan));
    }
    handles
}

/// Makes three steps of handles of [`create`], destroys the handles, and returns the engine's description. The random calls
/// of `fuzz` compare rows.
fn check_steps(handles: Handles) -> avsg_engine_info {
    // SAFETY: the struct has its `size` set.
    let info = filled(|to| unsafe { avsg_engine_get_info(handles.engine, to) });
    for step in 0..3 {
        let mut owned = OwnedBatch::uniform(K, REQUESTS, 1, 512);
        let id = |n| ((n * 7 + n / K * 31 + step * 97) % 512) as i32;
        owned.ids = (0..REQUESTS * K).map(id).collect();
        let (engine, plan) = (handles.engine, handles.plan);
        // SAFETY: `owned` owns the arrays.
        ok(unsafe { avsg_engine_step(engine, &c_batch(&owned), plan, 0, null(), null_mut()) });
    }
    handles.destroy();
    info
}

/// Asserts that calls on an engine and a plan are refused during a step with them, but for those that give
/// what never changes, and counters.
fn expect_busy(engine: *mut avsg_engine, plan: *mut avsg_plan) {
    // SAFETY: handles are looked up, and structs have their `size` set.
    let statuses = unsafe {
        ok(avsg_engine_get_info(engine, &mut sized()));
        ok(avsg_engine_get_buffer(engine, 0, 0, &mut sized()));
        ok(avsg_plan_get_arrays(plan, HOST, &mut sized()));
        ok(avsg_engine_get_stats(engine, &mut sized()));
        ok(avsg_engine_get_used_slots(engine, 0, [0; 8].as_mut_ptr(), 8));
        let counters = filled(|to| avsg_plan_get_counters(plan, to));
        assert_eq!(counters.number, 0, "a batch is planned into it");
        [
            avsg_plan_create(engine, 1, 1, &mut null_mut()),
            avsg_engine_invalidate(engine, 0, 0, 1),
            avsg_engine_discard(engine, plan),
            avsg_engine_destroy(engine),
            avsg_plan_destroy(plan),
        ]
    };
    for status in statuses {
        expect_error(status, AVSG_BUSY, &["in use by another thread", "again"]);
    }
}

/// What the executor counts, calls of itself, of tasks, and during a step, and the handles that it finds
/// in use there.
#[derive(Default)]
struct Counts {
    launches: AtomicUsize,
    refusals: AtomicUsize,
    tasks: AtomicUsize,
    handles: OnceLock<(usize, usize)>,
}

/// An executor with a thread for each task.
unsafe extern "C" fn execute(user: *mut c_void, task: avsg_task, data: *mut c_void, count: usize) {
    // SAFETY: `user` is the `Counts` of the test.
    let counts = unsafe { &*user.cast::<Counts>() };
    counts.launches.fetch_add(1, Ordering::Relaxed);
    // The creation of an engine calls the executor, too.
    if let Some(&(engine, plan)) = counts.handles.get() {
        expect_busy(without_provenance_mut(engine), without_provenance_mut(plan));
        counts.refusals.fetch_add(1, Ordering::Relaxed);
    }
    let (task, data) = (task.unwrap(), data as usize);
    std::thread::scope(|scope| {
        for index in 0..count {
            scope.spawn(move || {
                counts.tasks.fetch_add(1, Ordering::Relaxed);
                // SAFETY: this function has not returned, and each index is passed once.
                unsafe { task(data as *mut c_void, index) };
            });
        }
    });
}

#[test]
fn an_engine_runs_on_the_executor_of_a_caller_and_on_workers() {
    let counts = Counts::default();
    let user = (&raw const counts).cast_mut().cast();
    let own = workers(&avsg_workers_config { executor: Some(execute), user, ..workers_config(3) });
    let engine = avsg_engine_config { workers: own, cores: 0, ..engine_config() };
    let handles = create(engine);
    counts.handles.set((handles.engine.addr(), handles.plan.addr())).unwrap();
    let info = check_steps(handles);
    assert_eq!((info.threads, info.cores), (3, 3));
    let (launches, tasks) = (counts.launches.into_inner(), counts.tasks.into_inner());
    assert!(counts.refusals.into_inner() >= 3);
    assert!(launches >= 3 && tasks == 3 * launches, "{launches} launches, {tasks} tasks");
    ok(avsg_workers_destroy(own));
    expect_error(avsg_workers_destroy(own), AVSG_HANDLE, &["workers is", "destroyed"]);

    let shared = workers(&workers_config(2));
    let engine = avsg_engine_config { workers: shared, ..engine_config() };
    check_steps(create(engine));
    // Working memory is mapped in whole pages of 2 MiB, of which a thread needs most of one with K
    // of 32768.
    let engine = avsg_engine_config { k: 32768, slots: 32768, tokens: 1, ..engine };
    let tables = |workers| {
        let config = avsg_engine_config { workers, ..engine };
        // SAFETY: the structs have their `size` set.
        filled(|to| unsafe { avsg_get_memory(&config, &pool_config(), 0, 0, 0, to) }).tables
    };
    assert!(tables(shared) > tables(null()), "each thread has working memory");
    ok(avsg_workers_destroy(shared));
}

#[test]
fn wrong_workers_are_refused() {
    let refuse = |spoil: &dyn Fn(&mut avsg_workers_config), parts: &[&str]| {
        let (mut config, mut out) = (workers_config(2), null_mut());
        spoil(&mut config);
        // SAFETY: the struct has its `size` set, and its pointers are valid.
        expect_error(unsafe { avsg_workers_create(&config, &mut out) }, AVSG_INVALID, parts);
        assert!(out.is_null());
    };
    let far = [1023, 1023];
    refuse(&|c| c.threads = 0, &["worker threads is 0", "1..=1024"]);
    refuse(&|c| c.threads = 1025, &["worker threads is 1025"]);
    refuse(&|c| c.pin = 2, &["pin is 2"]);
    refuse(&|c| (c.threads, c.pin) = (1024, 1), &["is 1023", "do not pin"]);
    refuse(&|c| c.spin_us = -2, &["spin_us is -2"]);
    refuse(&|c| c.reserved = 1, &["reserved is 1"]);
    refuse(&|c| (c.cpus, c.cpu_count) = (far.as_ptr(), 1), &["cpus is 1023"]);
    refuse(&|c| (c.cpus, c.cpu_count) = ([-1].as_ptr(), 1), &["cpus has -1"]);
    let executor: avsg_executor = Some(execute);
    refuse(&|c| (c.pin, c.executor) = (1, executor), &["placed by their owner"]);
}

unsafe extern "C" fn print(user: *mut c_void, level: i32, message: *const c_char) {
    assert_eq!(user.addr(), 24);
    // SAFETY: the message is a NUL-terminated string that is valid during the call.
    println!("level {level}: {}", unsafe { CStr::from_ptr(message) }.to_str().unwrap());
}

/// The environment variable that makes the test below print the log.
const CHILD: &str = "AVSG_TEST_LOG";

/// A child, whose process measures its choices while the log is set.
#[test]
fn a_child_prints_the_log() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let user = without_provenance_mut(24);
    // SAFETY: `print` may be called on any thread.
    unsafe {
        expect_error(avsg_set_log(Some(print), user, 5), AVSG_INVALID, &["level is 5"]);
        ok(avsg_set_log(Some(print), user, avsg_log_level::AVSG_LOG_DEBUG as i32));
    }
    let config = avsg_engine_config { cores: 2, ..engine_config() };
    check_steps(create(config));
    // SAFETY: NULL takes no messages.
    ok(unsafe { avsg_set_log(None, null_mut(), 0) });
    println!("no more messages");
    check_steps(create(config));
}

#[test]
fn the_log_gets_what_was_chosen_and_nothing_is_printed() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "guest::a_child_prints_the_log", "--nocapture"]).env(CHILD, "1");
    let output = command.output().unwrap();
    let [out, errors] = [output.stdout, output.stderr].map(|t| String::from_utf8(t).unwrap());
    assert!(output.status.success() && errors.is_empty(), "{errors} {out}");
    assert_eq!(out.matches("level 3: kernels run on ").count(), 1, "{out}");
    let (before, after) = out.split_once("no more messages").unwrap();
    assert!(before.contains("level 4: ") && !after.contains("level "), "{out}");
}
