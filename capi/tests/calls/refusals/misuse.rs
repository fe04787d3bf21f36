//! Calls of every function of the header with every kind of handle, pointer and number that it must
//! refuse.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut, without_provenance_mut};

use avsg_capi::avsg_status::*;
use avsg_capi::*;

use super::expect_step_works;
use avsg_capi_testkit::*;

/// Valid arguments, of which a call replaces one.
struct ValidArguments {
    handles: Handles,
    config: avsg_engine_config,
    owned: Arrays,
}

/// A call with valid arguments but for one.
type Call<T> = fn(&ValidArguments, T) -> avsg_status;

/// Returns a handle with these bits.
fn handle<T>(bits: usize) -> *mut T {
    without_provenance_mut(bits)
}

/// Makes a [`Call`] of an unsafe function.
macro_rules! unsafe_call {
    (|$valid:ident, $arg:ident| $body:expr) => {
        // SAFETY: in each line below, every argument but one is valid, and that one is a handle,
        // which is looked up, or a pointer or number that the function refuses before it uses it.
        |$valid, $arg| unsafe { $body }
    };
}

const NO_STREAM: *mut c_void = null_mut();

unsafe extern "C" fn ignore(_: *mut c_void, _: i32, _: *const c_char) {}

fn workers_config() -> avsg_workers_config {
    avsg_workers_config { threads: 1, ..sized() }
}

fn on_workers(workers: *mut avsg_workers) -> avsg_engine_config {
    avsg_engine_config { workers, ..engine_config() }
}

/// Returns the bits of a handle of workers that are destroyed.
fn stale_workers() -> usize {
    let mut workers = null_mut();
    // SAFETY: the struct has its `size` set.
    ok(unsafe { avsg_workers_create(&workers_config(), &mut workers) });
    ok(avsg_workers_destroy(workers));
    workers.addr()
}

/// Arguments that are handles: the function, the kind of the handle, and the call.
#[rustfmt::skip]
const HANDLE_ARGUMENTS: &[(&str, &str, Call<usize>)] = &[
    ("avsg_pool_get_info", "pool", unsafe_call!(|_v, h| avsg_pool_get_info(handle(h), &mut sized()))),
    ("avsg_pool_get_chunks", "pool", unsafe_call!(|_v, h| avsg_pool_get_chunks(handle(h), null_mut(), 0, &mut 0))),
    ("avsg_pool_flush", "pool", |_, h| avsg_pool_flush(handle(h))),
    ("avsg_pool_demote", "pool", |_, h| avsg_pool_demote(handle(h))),
    ("avsg_pool_destroy", "pool", |_, h| avsg_pool_destroy(handle(h))),
    ("avsg_pool_write_row", "pool", unsafe_call!(|_v, h| avsg_pool_write_row(handle(h), 0, 0, row(0, 0).as_ptr().cast(), ROW))),
    ("avsg_pool_read_row", "pool", unsafe_call!(|_v, h| avsg_pool_read_row(handle(h), 0, 0, [0u8; ROW].as_mut_ptr().cast(), ROW))),
    ("avsg_pool_get_row", "pool", unsafe_call!(|_v, h| avsg_pool_get_row(handle(h), 0, 0, 0, &mut null_mut()))),
    ("avsg_pool_export", "pool", unsafe_call!(|_v, h| avsg_pool_export(handle(h), [0; 112].as_mut_ptr(), 112, &mut 0))),
    ("avsg_workers_destroy", "workers", |_, h| avsg_workers_destroy(handle(h))),
    ("avsg_engine_create", "workers", unsafe_call!(|v, h| avsg_engine_create(&on_workers(handle(h)), v.handles.pool, &mut null_mut()))),
    ("avsg_engine_create", "pool", unsafe_call!(|v, h| avsg_engine_create(&v.config, handle(h), &mut null_mut()))),
    ("avsg_engine_get_info", "engine", unsafe_call!(|_v, h| avsg_engine_get_info(handle(h), &mut sized()))),
    ("avsg_engine_invalidate", "engine", |_, h| avsg_engine_invalidate(handle(h), 0, 0, 1)),
    ("avsg_engine_discard", "engine", |v, h| avsg_engine_discard(handle(h), v.handles.plan)),
    ("avsg_engine_discard", "plan", |v, h| avsg_engine_discard(v.handles.engine, handle(h))),
    ("avsg_engine_get_stats", "engine", unsafe_call!(|_v, h| avsg_engine_get_stats(handle(h), &mut sized()))),
    ("avsg_engine_load", "engine", unsafe_call!(|v, h| avsg_engine_load(handle(h), &sized(), v.handles.plan))),
    ("avsg_engine_load", "plan", unsafe_call!(|v, h| avsg_engine_load(v.handles.engine, &sized(), handle(h)))),
    ("avsg_engine_fork", "engine", unsafe_call!(|_v, h| avsg_engine_fork(handle(h), 0, 1, &1, &1, 1))),
    ("avsg_engine_get_held", "engine", unsafe_call!(|_v, h| avsg_engine_get_held(handle(h), 0, 0, 1, 0, 1, &mut 0, 1))),
    ("avsg_engine_destroy", "engine", |_, h| avsg_engine_destroy(handle(h))),
    ("avsg_engine_get_buffer", "engine", unsafe_call!(|_v, h| avsg_engine_get_buffer(handle(h), 0, 0, &mut sized()))),
    ("avsg_engine_get_page_table", "engine", unsafe_call!(|_v, h| avsg_engine_get_page_table(handle(h), &0, 1, 0, &mut 0, 1, &mut 0))),
    ("avsg_plan_create", "engine", unsafe_call!(|_v, h| avsg_plan_create(handle(h), 1, 1, &mut null_mut()))),
    ("avsg_engine_plan", "engine", unsafe_call!(|v, h| avsg_engine_plan(handle(h), &v.owned.batch(), v.handles.plan, NO_STREAM))),
    ("avsg_engine_plan", "plan", unsafe_call!(|v, h| avsg_engine_plan(v.handles.engine, &v.owned.batch(), handle(h), NO_STREAM))),
    ("avsg_engine_transfer", "engine", unsafe_call!(|v, h| avsg_engine_transfer(handle(h), v.handles.plan, &0, 1, &v.owned.fresh(), NO_STREAM))),
    ("avsg_engine_transfer", "plan", unsafe_call!(|v, h| avsg_engine_transfer(v.handles.engine, handle(h), &0, 1, &v.owned.fresh(), NO_STREAM))),
    ("avsg_engine_step", "engine", unsafe_call!(|v, h| avsg_engine_step(handle(h), &v.owned.batch(), v.handles.plan, 0, &v.owned.fresh(), NO_STREAM))),
    ("avsg_engine_step", "plan", unsafe_call!(|v, h| avsg_engine_step(v.handles.engine, &v.owned.batch(), handle(h), 0, &v.owned.fresh(), NO_STREAM))),
    ("avsg_engine_append", "engine", unsafe_call!(|v, h| avsg_engine_append(handle(h), &v.owned.batch(), &0, 1, &v.owned.fresh(), NO_STREAM))),
    ("avsg_plan_destroy", "plan", |_, h| avsg_plan_destroy(handle(h))),
    ("avsg_plan_get_arrays", "plan", unsafe_call!(|_v, h| avsg_plan_get_arrays(handle(h), HOST, &mut sized()))),
    ("avsg_plan_get_arrays", "plan", unsafe_call!(|_v, h| avsg_plan_get_arrays(handle(h), DEVICE, &mut sized()))),
    ("avsg_plan_get_counters", "plan", unsafe_call!(|_v, h| avsg_plan_get_counters(handle(h), &mut sized()))),
];

/// What a pointer argument points to, which decides the values that the function must refuse.
#[derive(Clone, Copy, PartialEq)]
enum Pointee {
    /// A struct that begins with its size.
    Struct,
    /// An aligned result or array.
    Words,
    /// Bytes, which need no alignment.
    Bytes,
}
use Pointee::*;

/// Arguments that are pointers: the function, the pointee, and the call.
#[rustfmt::skip]
const POINTER_ARGUMENTS: &[(&str, Pointee, Call<*mut c_void>)] = &[
    ("avsg_pool_create", Struct, unsafe_call!(|_v, p| avsg_pool_create(p.cast(), &mut null_mut()))),
    ("avsg_workers_create", Struct, unsafe_call!(|_v, p| avsg_workers_create(p.cast(), &mut null_mut()))),
    ("avsg_workers_create", Words, unsafe_call!(|_v, p| avsg_workers_create(&workers_config(), p.cast()))),
    ("avsg_pool_create", Words, unsafe_call!(|_v, p| avsg_pool_create(&pool_config(), p.cast()))),
    ("avsg_pool_get_info", Struct, unsafe_call!(|v, p| avsg_pool_get_info(v.handles.pool, p.cast()))),
    ("avsg_pool_get_chunks", Words, unsafe_call!(|v, p| avsg_pool_get_chunks(v.handles.pool, p.cast(), 9, &mut 0))),
    ("avsg_pool_get_chunks", Words, unsafe_call!(|v, p| avsg_pool_get_chunks(v.handles.pool, null_mut(), 0, p.cast()))),
    ("avsg_pool_write_row", Bytes, unsafe_call!(|v, p| avsg_pool_write_row(v.handles.pool, 0, 0, p, ROW))),
    ("avsg_pool_read_row", Bytes, unsafe_call!(|v, p| avsg_pool_read_row(v.handles.pool, 0, 0, p, ROW))),
    ("avsg_pool_get_row", Words, unsafe_call!(|v, p| avsg_pool_get_row(v.handles.pool, 0, 0, 0, p.cast()))),
    ("avsg_pool_export", Bytes, unsafe_call!(|v, p| avsg_pool_export(v.handles.pool, p.cast(), 112, &mut 0))),
    ("avsg_pool_export", Words, unsafe_call!(|v, p| avsg_pool_export(v.handles.pool, [0; 112].as_mut_ptr(), 112, p.cast()))),
    ("avsg_pool_import", Bytes, unsafe_call!(|_v, p| avsg_pool_import(p.cast(), 112, 0, 0, &mut null_mut()))),
    ("avsg_pool_import", Words, unsafe_call!(|_v, p| avsg_pool_import([0; 112].as_ptr(), 112, 0, 0, p.cast()))),
    ("avsg_pool_open", Struct, unsafe_call!(|_v, p| avsg_pool_open(p.cast(), &mut null_mut()))),
    ("avsg_pool_open", Words, unsafe_call!(|_v, p| avsg_pool_open(&sized(), p.cast()))),
    ("avsg_get_memory", Struct, unsafe_call!(|v, p| avsg_get_memory(&v.config, p.cast(), 1, 1, 1, &mut sized()))),
    ("avsg_get_memory", Struct, unsafe_call!(|v, p| avsg_get_memory(&v.config, &pool_config(), 1, 1, 1, p.cast()))),
    ("avsg_engine_create", Struct, unsafe_call!(|v, p| avsg_engine_create(p.cast(), v.handles.pool, &mut null_mut()))),
    ("avsg_engine_create", Words, unsafe_call!(|v, p| avsg_engine_create(&v.config, v.handles.pool, p.cast()))),
    ("avsg_engine_get_info", Struct, unsafe_call!(|v, p| avsg_engine_get_info(v.handles.engine, p.cast()))),
    ("avsg_engine_load", Struct, unsafe_call!(|v, p| avsg_engine_load(v.handles.engine, p.cast(), v.handles.plan))),
    ("avsg_engine_get_buffer", Struct, unsafe_call!(|v, p| avsg_engine_get_buffer(v.handles.engine, 0, 0, p.cast()))),
    ("avsg_engine_get_page_table", Words, unsafe_call!(|v, p| avsg_engine_get_page_table(v.handles.engine, p.cast(), 1, 0, &mut 0, 1, &mut 0))),
    ("avsg_engine_get_page_table", Words, unsafe_call!(|v, p| avsg_engine_get_page_table(v.handles.engine, &0, 1, 0, p.cast(), 1, &mut 0))),
    ("avsg_engine_get_page_table", Words, unsafe_call!(|v, p| avsg_engine_get_page_table(v.handles.engine, &0, 1, 0, &mut 0, 1, p.cast()))),
    ("avsg_plan_create", Words, unsafe_call!(|v, p| avsg_plan_create(v.handles.engine, 1, 1, p.cast()))),
    ("avsg_engine_plan", Struct, unsafe_call!(|v, p| avsg_engine_plan(v.handles.engine, p.cast(), v.handles.plan, NO_STREAM))),
    ("avsg_engine_step", Struct, unsafe_call!(|v, p| avsg_engine_step(v.handles.engine, p.cast(), v.handles.plan, 0, null(), NO_STREAM))),
    ("avsg_engine_append", Struct, unsafe_call!(|v, p| avsg_engine_append(v.handles.engine, p.cast(), &0, 1, &v.owned.fresh(), NO_STREAM))),
    ("avsg_engine_append", Struct, unsafe_call!(|v, p| avsg_engine_append(v.handles.engine, &v.owned.batch(), &0, 1, p.cast(), NO_STREAM))),
    ("avsg_engine_transfer", Words, unsafe_call!(|v, p| avsg_engine_transfer(v.handles.engine, v.handles.plan, p.cast(), 1, null(), NO_STREAM))),
    ("avsg_engine_append", Words, unsafe_call!(|v, p| avsg_engine_append(v.handles.engine, &v.owned.batch(), p.cast(), 1, &v.owned.fresh(), NO_STREAM))),
    ("avsg_engine_fork", Words, unsafe_call!(|v, p| avsg_engine_fork(v.handles.engine, 0, 1, p.cast(), &1, 1))),
    ("avsg_engine_fork", Words, unsafe_call!(|v, p| avsg_engine_fork(v.handles.engine, 0, 1, &1, p.cast(), 1))),
    ("avsg_engine_get_held", Words, unsafe_call!(|v, p| avsg_engine_get_held(v.handles.engine, 0, 0, 1, 0, 1, p.cast(), 1))),
    ("avsg_plan_get_arrays", Struct, unsafe_call!(|v, p| avsg_plan_get_arrays(v.handles.plan, HOST, p.cast()))),
    ("avsg_plan_get_arrays", Struct, unsafe_call!(|v, p| avsg_plan_get_arrays(v.handles.plan, DEVICE, p.cast()))),
    ("avsg_engine_get_stats", Struct, unsafe_call!(|v, p| avsg_engine_get_stats(v.handles.engine, p.cast()))),
    ("avsg_plan_get_counters", Struct, unsafe_call!(|v, p| avsg_plan_get_counters(v.handles.plan, p.cast()))),
];

/// Arguments that are numbers: the call, the name in its message, and the smallest number that is
/// too large.
#[rustfmt::skip]
const NUMBER_ARGUMENTS: &[(Call<usize>, &str, usize)] = &[
    (unsafe_call!(|v, n| avsg_pool_write_row(v.handles.pool, n, 0, row(0, 0).as_ptr().cast(), ROW)), "layer", 2),
    (unsafe_call!(|v, n| avsg_pool_write_row(v.handles.pool, 0, n, row(0, 0).as_ptr().cast(), ROW)), "row", ROWS),
    (unsafe_call!(|v, n| avsg_pool_write_row(v.handles.pool, 0, 0, v.owned.ids.as_ptr().cast(), n.min(128))), "bytes", ROW + 1),
    (unsafe_call!(|v, n| avsg_pool_read_row(v.handles.pool, n, 0, [0u8; ROW].as_mut_ptr().cast(), ROW)), "layer", 2),
    (unsafe_call!(|v, n| avsg_pool_read_row(v.handles.pool, 0, n, [0u8; ROW].as_mut_ptr().cast(), ROW)), "row", ROWS),
    (unsafe_call!(|v, n| avsg_pool_read_row(v.handles.pool, 0, 0, [0u8; 128].as_mut_ptr().cast(), n.min(128))), "bytes", ROW + 1),
    (unsafe_call!(|v, n| avsg_pool_get_row(v.handles.pool, n, 0, 0, &mut null_mut())), "layer", 2),
    (unsafe_call!(|v, n| avsg_pool_get_row(v.handles.pool, 0, n, 0, &mut null_mut())), "segment", 2),
    (unsafe_call!(|v, n| avsg_pool_get_row(v.handles.pool, 0, 0, n, &mut null_mut())), "row", ROWS),
    (|v, n| avsg_engine_invalidate(v.handles.engine, n, 0, 1), "state", 2),
    (unsafe_call!(|v, n| avsg_engine_fork(v.handles.engine, n, 1, &1, &1, 1)), "state", 2),
    (unsafe_call!(|v, n| avsg_engine_fork(v.handles.engine, 0, 1, &(n.min(1 << 30) as i32), &1, 1)), "state", 2),
    (unsafe_call!(|v, n| avsg_engine_get_held(v.handles.engine, n, 0, 1, 0, 1, &mut 0, 1)), "indexer", 1),
    (unsafe_call!(|v, n| avsg_engine_get_held(v.handles.engine, 0, n, 1, 0, 1, &mut 0, 1)), "state", 2),
    (unsafe_call!(|v, n| avsg_engine_get_held(v.handles.engine, 0, 0, 1, 0, n, &mut 0, 1)), "", 65),
    (unsafe_call!(|v, n| avsg_engine_transfer(v.handles.engine, v.handles.plan, &n, 1, &v.owned.fresh(), NO_STREAM)), "layer", 2),
    (unsafe_call!(|v, n| avsg_engine_append(v.handles.engine, &v.owned.batch(), &n, 1, &v.owned.fresh(), NO_STREAM)), "layer", 2),
    (|v, n| avsg_engine_invalidate(v.handles.engine, 0, n, 1 << 24), "", 1 << 24),
    (|v, n| avsg_engine_invalidate(v.handles.engine, 0, 0, n), "", (1 << 24) + 1),
    (unsafe_call!(|v, n| avsg_engine_get_buffer(v.handles.engine, n, 0, &mut sized())), "layer", 2),
    (unsafe_call!(|v, n| avsg_engine_get_buffer(v.handles.engine, 0, n, &mut sized())), "segment", 2),
    (unsafe_call!(|v, n| avsg_engine_step(v.handles.engine, &v.owned.batch(), v.handles.plan, n, &v.owned.fresh(), NO_STREAM)), "layer", 2),
    (unsafe_call!(|_v, n| avsg_set_log(Some(ignore), null_mut(), n as i32)), "level", 5),
    (unsafe_call!(|v, n| avsg_plan_create(v.handles.engine, n, 1, &mut null_mut())), "max_tokens", (1 << 20) + 1),
    (unsafe_call!(|v, n| avsg_plan_create(v.handles.engine, 1, n, &mut null_mut())), "requests", (1 << 20) + 1),
    (unsafe_call!(|v, n| avsg_get_memory(&v.config, &pool_config(), n, 1, 1, &mut sized())), "max_tokens", (1 << 20) + 1),
    (unsafe_call!(|v, n| avsg_get_memory(&v.config, &pool_config(), 1, n, 1, &mut sized())), "requests", (1 << 20) + 1),
    (unsafe_call!(|v, n| avsg_engine_get_page_table(v.handles.engine, &0, 1, n, &mut 0, 1, &mut 0)), "page", 129),
    (unsafe_call!(|v, n| avsg_engine_get_page_table(v.handles.engine, &(n.min(1 << 30) as i32), 1, 0, &mut 0, 1, &mut 0)), "state", 2),
];

#[test]
fn every_function_refuses_every_kind_of_invalid_argument() {
    each_device(refuse_arguments);
}

fn refuse_arguments(device: &'static CStr) {
    let valid = ValidArguments {
        handles: Handles::on(device),
        config: config_on(device),
        owned: Arrays::new(0),
    };
    let destroyed = Handles::on(device);
    let [pool, engine, plan] = addresses(&destroyed);
    destroyed.destroy();
    let stale = [pool, engine, plan, stale_workers()];
    expect_step_works(&valid.handles, 1);
    let names = ["pool", "engine", "plan", "workers"];
    for &(name, kind, call) in HANDLE_ARGUMENTS {
        println!("{name}: {kind}");
        let index = names.iter().position(|&name| name == kind).unwrap();
        // Without workers an engine starts threads of its own.
        if !name.ends_with("_destroy") && kind != "workers" {
            expect_error(call(&valid, 0), AVSG_NULL, &[&format!("{kind} is NULL"), "create one"]);
        }
        expect_error(call(&valid, stale[index]), AVSG_HANDLE, &[kind, "it was destroyed"]);
        let other = addresses(&valid.handles)[(index + 1) % 3];
        expect_error(call(&valid, other), AVSG_HANDLE, &[kind, "another kind"]);
        for bits in [64, 1, usize::MAX, (&raw const valid).addr()] {
            let status = call(&valid, bits);
            assert_eq!(status, AVSG_HANDLE, "{bits:#x}: {}", last_error());
        }
    }
    expect_step_works(&valid.handles, 2);
    // This memory is aligned and no shorter than any struct or array here.
    let mut memory = [0u64; 64];
    for &(name, pointee, call) in POINTER_ARGUMENTS {
        println!("{name}: a pointer");
        expect_error(call(&valid, null_mut()), AVSG_NULL, &["is NULL"]);
        if pointee != Bytes {
            let odd = memory.as_mut_ptr().wrapping_byte_add(1).cast();
            expect_error(call(&valid, odd), AVSG_INVALID, &["must be a multiple of"]);
        }
        if pointee == Struct {
            for size in [0, 8, 1 << 40, u64::MAX] {
                memory = [0; 64];
                memory[0] = size;
                let parts = [&format!(".size is {size}")[..], "sizeof"];
                expect_error(call(&valid, memory.as_mut_ptr().cast()), AVSG_SIZE, &parts);
            }
        }
    }
    expect_step_works(&valid.handles, 3);
    for (at, &(call, what, first)) in NUMBER_ARGUMENTS.iter().enumerate() {
        println!("number {at}: {what}");
        for n in [first, usize::MAX / 2, usize::MAX] {
            expect_error(call(&valid, n), AVSG_INVALID, &[what, " is "]);
        }
    }
    expect_step_works(&valid.handles, 4);
    valid.handles.destroy();
}

fn addresses(handles: &Handles) -> [usize; 3] {
    [handles.pool.addr(), handles.engine.addr(), handles.plan.addr()]
}

#[test]
fn the_lists_above_name_every_function_of_the_header() {
    let header = include_str!("../../../../include/avsg.h");
    let declared = header.lines().filter_map(|line| line.strip_prefix("avsg_status "));
    let names: Vec<&str> = declared.filter_map(|rest| rest.split('(').next()).collect();
    assert!(names.len() > 30, "{names:?}");
    let listed = |name: &&str| {
        HANDLE_ARGUMENTS.iter().any(|(listed, ..)| listed == name)
            || POINTER_ARGUMENTS.iter().any(|(listed, ..)| listed == name)
            // It takes neither a handle nor a pointer that it follows.
            || *name == "avsg_set_log"
    };
    let missing: Vec<_> = names.into_iter().filter(|name| !listed(name)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}
