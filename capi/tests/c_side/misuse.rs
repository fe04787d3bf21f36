//! Every function of the header with every handle, pointer and number that it must refuse.

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut, without_provenance_mut};

use avsg_capi::avsg_status::*;
use avsg_capi::*;

use super::c::*;
use super::goes_on;

/// What the good arguments are taken from.
struct Good {
    life: Life,
    config: avsg_engine_config,
    owned: Arrays,
}

type Call<T> = fn(&Good, T) -> avsg_status;

fn to<T>(bits: usize) -> *mut T {
    without_provenance_mut(bits)
}

/// A call and what it says of its arguments: unsafe because C's functions are.
macro_rules! call {
    (|$good:ident, $arg:ident| $body:expr) => {
        // SAFETY: in each line below, everything but the one wrong argument is good: handles are
        // looked up, structs have their sizes, places and arrays are the caller's.
        |$good, $arg| unsafe { $body }
    };
}

const NOTHING: *mut c_void = null_mut();
/// Handles: the function, of which kind its handle is, the call with another one.
#[rustfmt::skip]
const HANDLES: &[(&str, &str, Call<usize>)] = &[
    ("avsg_pool_get_info", "pool", call!(|_g, h| avsg_pool_get_info(to(h), &mut sized()))),
    ("avsg_pool_chunks", "pool", call!(|_g, h| avsg_pool_chunks(to(h), null_mut(), 0, &mut 0))),
    ("avsg_pool_demote", "pool", |_, h| avsg_pool_demote(to(h))),
    ("avsg_pool_destroy", "pool", |_, h| avsg_pool_destroy(to(h))),
    ("avsg_pool_write_row", "pool", call!(|_g, h| avsg_pool_write_row(to(h), 0, 0, row(0, 0).as_ptr().cast(), ROW))),
    ("avsg_pool_read_row", "pool", call!(|_g, h| avsg_pool_read_row(to(h), 0, 0, [0u8; ROW].as_mut_ptr().cast(), ROW))),
    ("avsg_pool_row", "pool", call!(|_g, h| avsg_pool_row(to(h), 0, 0, 0, &mut null()))),
    ("avsg_pool_row_mut", "pool", call!(|_g, h| avsg_pool_row_mut(to(h), 0, 0, 0, &mut null_mut()))),
    ("avsg_pool_export", "pool", call!(|_g, h| avsg_pool_export(to(h), [0; 112].as_mut_ptr(), 112, &mut 0))),
    ("avsg_pool_send", "pool", |_, h| avsg_pool_send(to(h), 0)),
    ("avsg_engine_create", "pool", call!(|g, h| avsg_engine_create(&g.config, to(h), &mut null_mut()))),
    ("avsg_engine_get_info", "engine", call!(|_g, h| avsg_engine_get_info(to(h), &mut sized()))),
    ("avsg_engine_table", "engine", call!(|_g, h| avsg_engine_table(to(h), 0, &mut null(), &mut 0))),
    ("avsg_engine_destroy", "engine", |_, h| avsg_engine_destroy(to(h))),
    ("avsg_engine_buffer", "engine", call!(|_g, h| avsg_engine_buffer(to(h), 0, 0, &mut sized()))),
    ("avsg_engine_block_table", "engine", call!(|_g, h| avsg_engine_block_table(to(h), &0, 1, 0, &mut 0, 1, &mut 0))),
    ("avsg_plan_create", "engine", call!(|_g, h| avsg_plan_create(to(h), 1, 1, &mut null_mut()))),
    ("avsg_engine_plan", "engine", call!(|g, h| avsg_engine_plan(to(h), &g.owned.batch(), g.life.plan, NOTHING))),
    ("avsg_engine_plan", "plan", call!(|g, h| avsg_engine_plan(g.life.engine, &g.owned.batch(), to(h), NOTHING))),
    ("avsg_engine_transfer", "engine", call!(|g, h| avsg_engine_transfer(to(h), g.life.plan, 0, &g.owned.fresh(), NOTHING))),
    ("avsg_engine_transfer", "plan", call!(|g, h| avsg_engine_transfer(g.life.engine, to(h), 0, &g.owned.fresh(), NOTHING))),
    ("avsg_engine_step", "engine", call!(|g, h| avsg_engine_step(to(h), &g.owned.batch(), g.life.plan, 0, &g.owned.fresh(), NOTHING))),
    ("avsg_engine_step", "plan", call!(|g, h| avsg_engine_step(g.life.engine, &g.owned.batch(), to(h), 0, &g.owned.fresh(), NOTHING))),
    ("avsg_engine_append", "engine", call!(|g, h| avsg_engine_append(to(h), &g.owned.batch(), 0, &g.owned.fresh(), NOTHING))),
    ("avsg_plan_destroy", "plan", |_, h| avsg_plan_destroy(to(h))),
    ("avsg_plan_get_arrays", "plan", call!(|_g, h| avsg_plan_get_arrays(to(h), &mut sized()))),
    ("avsg_plan_get_device_arrays", "plan", call!(|_g, h| avsg_plan_get_device_arrays(to(h), &mut sized()))),
    ("avsg_plan_get_counters", "plan", call!(|_g, h| avsg_plan_get_counters(to(h), &mut sized()))),
    ("avsg_plan_get_request", "plan", call!(|_g, h| avsg_plan_get_request(to(h), 0, &mut sized()))),
];

/// What a pointer is to: that decides what else it must not be.
#[derive(Clone, Copy, PartialEq)]
enum To {
    /// A struct with a size.
    Struct,
    /// A place for a result, or an array, of something aligned.
    Words,
    /// Bytes at any address.
    Bytes,
}
use To::*;

/// Pointers: the function, what it wants, the call with another one.
#[rustfmt::skip]
const POINTERS: &[(&str, To, Call<*mut c_void>)] = &[
    ("avsg_pool_bytes", Struct, call!(|_g, p| avsg_pool_bytes(p.cast(), &mut 0))),
    ("avsg_pool_bytes", Words, call!(|_g, p| avsg_pool_bytes(&pool_config(), p.cast()))),
    ("avsg_pool_create", Struct, call!(|_g, p| avsg_pool_create(p.cast(), &mut null_mut()))),
    ("avsg_pool_create", Words, call!(|_g, p| avsg_pool_create(&pool_config(), p.cast()))),
    ("avsg_pool_chunk_bytes", Struct, call!(|_g, p| avsg_pool_chunk_bytes(p.cast(), null_mut(), 0, &mut 0))),
    ("avsg_pool_chunk_bytes", Words, call!(|_g, p| avsg_pool_chunk_bytes(&pool_config(), p.cast(), 9, &mut 0))),
    ("avsg_pool_chunk_bytes", Words, call!(|_g, p| avsg_pool_chunk_bytes(&pool_config(), null_mut(), 0, p.cast()))),
    ("avsg_pool_from_memory", Struct, call!(|_g, p| avsg_pool_from_memory(p.cast(), null(), 0, &mut null_mut()))),
    ("avsg_pool_from_memory", Words, call!(|_g, p| avsg_pool_from_memory(&pool_config(), p.cast(), 4, &mut null_mut()))),
    ("avsg_pool_from_memory", Words, call!(|_g, p| avsg_pool_from_memory(&pool_config(), null(), 4, p.cast()))),
    ("avsg_pool_get_info", Struct, call!(|g, p| avsg_pool_get_info(g.life.pool, p.cast()))),
    ("avsg_pool_chunks", Words, call!(|g, p| avsg_pool_chunks(g.life.pool, p.cast(), 9, &mut 0))),
    ("avsg_pool_chunks", Words, call!(|g, p| avsg_pool_chunks(g.life.pool, null_mut(), 0, p.cast()))),
    ("avsg_pool_write_row", Bytes, call!(|g, p| avsg_pool_write_row(g.life.pool, 0, 0, p, ROW))),
    ("avsg_pool_read_row", Bytes, call!(|g, p| avsg_pool_read_row(g.life.pool, 0, 0, p, ROW))),
    ("avsg_pool_row", Words, call!(|g, p| avsg_pool_row(g.life.pool, 0, 0, 0, p.cast()))),
    ("avsg_pool_row_mut", Words, call!(|g, p| avsg_pool_row_mut(g.life.pool, 0, 0, 0, p.cast()))),
    ("avsg_pool_export", Bytes, call!(|g, p| avsg_pool_export(g.life.pool, p.cast(), 112, &mut 0))),
    ("avsg_pool_export", Words, call!(|g, p| avsg_pool_export(g.life.pool, [0; 112].as_mut_ptr(), 112, p.cast()))),
    ("avsg_pool_import", Bytes, call!(|_g, p| avsg_pool_import(p.cast(), 112, 0, 0, &mut null_mut()))),
    ("avsg_pool_import", Words, call!(|_g, p| avsg_pool_import([0; 112].as_ptr(), 112, 0, 0, p.cast()))),
    ("avsg_pool_recv", Words, call!(|_g, p| avsg_pool_recv(-1, 0, p.cast()))),
    ("avsg_engine_bytes", Struct, call!(|_g, p| avsg_engine_bytes(p.cast(), &pool_config(), &mut sized()))),
    ("avsg_engine_bytes", Struct, call!(|g, p| avsg_engine_bytes(&g.config, p.cast(), &mut sized()))),
    ("avsg_engine_bytes", Struct, call!(|g, p| avsg_engine_bytes(&g.config, &pool_config(), p.cast()))),
    ("avsg_engine_create", Struct, call!(|g, p| avsg_engine_create(p.cast(), g.life.pool, &mut null_mut()))),
    ("avsg_engine_create", Words, call!(|g, p| avsg_engine_create(&g.config, g.life.pool, p.cast()))),
    ("avsg_engine_get_info", Struct, call!(|g, p| avsg_engine_get_info(g.life.engine, p.cast()))),
    ("avsg_engine_table", Words, call!(|g, p| avsg_engine_table(g.life.engine, 0, p.cast(), &mut 0))),
    ("avsg_engine_table", Words, call!(|g, p| avsg_engine_table(g.life.engine, 0, &mut null(), p.cast()))),
    ("avsg_engine_buffer", Struct, call!(|g, p| avsg_engine_buffer(g.life.engine, 0, 0, p.cast()))),
    ("avsg_engine_block_table", Words, call!(|g, p| avsg_engine_block_table(g.life.engine, p.cast(), 1, 0, &mut 0, 1, &mut 0))),
    ("avsg_engine_block_table", Words, call!(|g, p| avsg_engine_block_table(g.life.engine, &0, 1, 0, p.cast(), 1, &mut 0))),
    ("avsg_engine_block_table", Words, call!(|g, p| avsg_engine_block_table(g.life.engine, &0, 1, 0, &mut 0, 1, p.cast()))),
    ("avsg_plan_create", Words, call!(|g, p| avsg_plan_create(g.life.engine, 1, 1, p.cast()))),
    ("avsg_engine_plan", Struct, call!(|g, p| avsg_engine_plan(g.life.engine, p.cast(), g.life.plan, NOTHING))),
    ("avsg_engine_step", Struct, call!(|g, p| avsg_engine_step(g.life.engine, p.cast(), g.life.plan, 0, null(), NOTHING))),
    ("avsg_engine_append", Struct, call!(|g, p| avsg_engine_append(g.life.engine, p.cast(), 0, &g.owned.fresh(), NOTHING))),
    ("avsg_engine_append", Struct, call!(|g, p| avsg_engine_append(g.life.engine, &g.owned.batch(), 0, p.cast(), NOTHING))),
    ("avsg_plan_get_arrays", Struct, call!(|g, p| avsg_plan_get_arrays(g.life.plan, p.cast()))),
    ("avsg_plan_get_device_arrays", Struct, call!(|g, p| avsg_plan_get_device_arrays(g.life.plan, p.cast()))),
    ("avsg_plan_get_counters", Struct, call!(|g, p| avsg_plan_get_counters(g.life.plan, p.cast()))),
    ("avsg_plan_get_request", Struct, call!(|g, p| avsg_plan_get_request(g.life.plan, 0, p.cast()))),
];

/// Numbers: the call, what its refusal names, numbers that are too large.
#[rustfmt::skip]
const NUMBERS: &[(Call<usize>, &str, usize)] = &[
    (call!(|g, n| avsg_pool_write_row(g.life.pool, n, 0, row(0, 0).as_ptr().cast(), ROW)), "layer", 2),
    (call!(|g, n| avsg_pool_write_row(g.life.pool, 0, n, row(0, 0).as_ptr().cast(), ROW)), "row", ROWS),
    (call!(|g, n| avsg_pool_write_row(g.life.pool, 0, 0, g.owned.ids.as_ptr().cast(), n.min(128))), "bytes", ROW + 1),
    (call!(|g, n| avsg_pool_read_row(g.life.pool, n, 0, [0u8; ROW].as_mut_ptr().cast(), ROW)), "layer", 2),
    (call!(|g, n| avsg_pool_read_row(g.life.pool, 0, n, [0u8; ROW].as_mut_ptr().cast(), ROW)), "row", ROWS),
    (call!(|g, n| avsg_pool_read_row(g.life.pool, 0, 0, [0u8; 128].as_mut_ptr().cast(), n.min(128))), "bytes", ROW + 1),
    (call!(|g, n| avsg_pool_row(g.life.pool, n, 0, 0, &mut null())), "layer", 2),
    (call!(|g, n| avsg_pool_row(g.life.pool, 0, n, 0, &mut null())), "segment", 2),
    (call!(|g, n| avsg_pool_row(g.life.pool, 0, 0, n, &mut null())), "row", ROWS),
    (call!(|g, n| avsg_pool_row_mut(g.life.pool, 0, 0, n, &mut null_mut())), "row", ROWS),
    (call!(|g, n| avsg_engine_table(g.life.engine, n, &mut null(), &mut 0)), "state", 2),
    (call!(|g, n| avsg_engine_buffer(g.life.engine, n, 0, &mut sized())), "layer", 2),
    (call!(|g, n| avsg_engine_buffer(g.life.engine, 0, n, &mut sized())), "segment", 2),
    (call!(|g, n| avsg_engine_step(g.life.engine, &g.owned.batch(), g.life.plan, n, &g.owned.fresh(), NOTHING)), "layer", 2),
    (call!(|g, n| avsg_engine_transfer(g.life.engine, g.life.plan, n, &g.owned.fresh(), NOTHING)), "layer", 2),
    (call!(|g, n| avsg_engine_append(g.life.engine, &g.owned.batch(), n, &g.owned.fresh(), NOTHING)), "layer", 2),
    (call!(|g, n| avsg_plan_get_request(g.life.plan, n, &mut sized())), "request", 2),
    (call!(|g, n| avsg_plan_create(g.life.engine, n, 1, &mut null_mut())), "rows", (1 << 20) + 1),
    (call!(|g, n| avsg_plan_create(g.life.engine, 1, n, &mut null_mut())), "requests", (1 << 20) + 1),
    (call!(|g, n| avsg_engine_block_table(g.life.engine, &0, 1, n, &mut 0, 1, &mut 0)), "page", 129),
    (call!(|g, n| avsg_engine_block_table(g.life.engine, &(n.min(1 << 30) as i32), 1, 0, &mut 0, 1, &mut 0)), "state", 2),
];

#[test]
fn every_function_refuses_every_argument_that_is_none() {
    each_device(refusals);
}

fn refusals(device: &'static CStr) {
    let good = Good { life: Life::on(device), config: config_on(device), owned: Arrays::new(0) };
    let gone = Life::on(device);
    let [pool, engine, plan] = handles(&gone);
    gone.end();
    goes_on(&good.life, 1);
    let names = ["pool", "engine", "plan"];
    for &(name, kind, call) in HANDLES {
        println!("{name}: {kind}");
        let of = names.iter().position(|&name| name == kind).unwrap();
        if !name.ends_with("_destroy") {
            fails(call(&good, 0), AVSG_NULL, &[&format!("{kind} is NULL"), "create one"]);
        }
        fails(call(&good, [pool, engine, plan][of]), AVSG_HANDLE, &[kind, "it was destroyed"]);
        let other = handles(&good.life)[(of + 1) % 3];
        fails(call(&good, other), AVSG_HANDLE, &[kind, "another kind"]);
        for bits in [64, 1, usize::MAX, (&raw const good).addr()] {
            let said = call(&good, bits);
            assert_eq!(said, AVSG_HANDLE, "{bits:#x}: {}", last_error());
        }
    }
    goes_on(&good.life, 2);
    // Aligned, and as long as any struct or array here.
    let mut room = [0u64; 64];
    for &(name, to, call) in POINTERS {
        println!("{name}: a pointer");
        fails(call(&good, null_mut()), AVSG_NULL, &["is NULL"]);
        if to != Bytes {
            let odd = room.as_mut_ptr().wrapping_byte_add(1).cast();
            fails(call(&good, odd), AVSG_INVALID, &["must be a multiple of"]);
        }
        if to == Struct {
            for size in [0, 8, 1 << 40, u64::MAX] {
                room = [0; 64];
                room[0] = size;
                let parts = [&format!(".size is {size}")[..], "sizeof"];
                fails(call(&good, room.as_mut_ptr().cast()), AVSG_SIZE, &parts);
            }
        }
    }
    goes_on(&good.life, 3);
    for (at, &(call, what, first)) in NUMBERS.iter().enumerate() {
        println!("number {at}: {what}");
        for n in [first, usize::MAX / 2, usize::MAX] {
            fails(call(&good, n), AVSG_INVALID, &[what, " is "]);
        }
    }
    goes_on(&good.life, 4);
    good.life.end();
}

fn handles(life: &Life) -> [usize; 3] {
    [life.pool.addr(), life.engine.addr(), life.plan.addr()]
}

/// The lists above are of the whole header.
#[test]
fn no_function_is_forgotten() {
    let header = include_str!("../../../include/avsg.h");
    let declared = header.lines().filter_map(|line| line.strip_prefix("avsg_status "));
    let names: Vec<&str> = declared.filter_map(|rest| rest.split('(').next()).collect();
    assert!(names.len() > 30, "{names:?}");
    let listed = |name: &&str| {
        HANDLES.iter().any(|(listed, ..)| listed == name)
            || POINTERS.iter().any(|(listed, ..)| listed == name)
    };
    let forgotten: Vec<_> = names.into_iter().filter(|name| !listed(name)).collect();
    assert_eq!(forgotten, Vec::<&str>::new());
}
