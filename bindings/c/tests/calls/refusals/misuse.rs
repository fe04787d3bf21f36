//! Calls of every function of the header with every kind of handle, pointer and number that it must
//! refuse.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null_mut, with_exposed_provenance_mut, without_provenance_mut};

use avsg_capi::avsg_status::*;
use avsg_capi::*;

use super::expect_step_works;
use avsg_capi_testkit::*;

/// The kinds of handles.
const KINDS: [&str; 4] = ["pool", "engine", "plan", "workers"];

/// An argument, which decides the values that the function must refuse.
#[derive(Clone, Copy)]
enum Argument {
    /// A handle of one of [`KINDS`].
    Handle(&'static str),
    /// A pointer to a struct that begins with its size.
    Struct,
    /// A pointer to an aligned result or array.
    Words,
    /// A pointer to bytes, which need no alignment.
    Bytes,
    /// A number: its name in the message, and the smallest number that is too large.
    Number(&'static str, usize),
}
use Argument::*;

/// The arguments of a call, of which one is not valid.
struct Arguments<'a> {
    /// Handles of [`KINDS`]; NULL for workers.
    handles: [usize; 4],
    config: avsg_engine_config,
    owned: &'a Arrays,
    /// What the call has taken so far.
    taken: Vec<Argument>,
    /// The place of the argument that is replaced, and its bits. If there is none, every argument is 0, and the
    /// call only shows what it takes.
    replaced: Option<(usize, usize)>,
}

impl Arguments<'_> {
    /// Takes the next argument and returns the bits that replace it.
    fn next(&mut self, argument: Argument) -> Option<usize> {
        let place = self.taken.len();
        self.taken.push(argument);
        self.replaced.map_or(Some(0), |(at, bits)| (at == place).then_some(bits))
    }

    fn handle<T>(&mut self, kind: &'static str) -> *mut T {
        let replaced = self.next(Handle(kind));
        without_provenance_mut(replaced.unwrap_or_else(|| self.handles[index(kind)]))
    }

    fn pointer<T>(&mut self, argument: Argument, valid: &mut T) -> *mut T {
        self.next(argument).map_or(valid, with_exposed_provenance_mut)
    }

    fn number(&mut self, name: &'static str, valid: usize, too_large: usize) -> usize {
        self.next(Number(name, too_large)).unwrap_or(valid)
    }

    /// Takes a list whose only element must be less than 2.
    fn list<T: TryFrom<usize> + Default>(&mut self, name: &'static str, valid: &mut T) -> *mut T {
        *valid = T::try_from(self.number(name, 0, 2).min(1 << 30)).unwrap_or_default();
        self.pointer(Words, valid)
    }
}

/// Returns the index of a kind of handles.
fn index(kind: &str) -> usize {
    KINDS.iter().position(|&name| name == kind).unwrap()
}

/// A function of the header, and a call of it.
type Call = (&'static str, fn(&mut Arguments<'_>) -> avsg_status);

/// Makes a [`Call`] of an unsafe function.
macro_rules! call {
    ($a:ident, $function:ident($($argument:expr),*)) => {
        // SAFETY: in each line below, every argument but one is valid, and that one is a handle,
        // which is looked up, or a pointer or number that the function refuses before it uses it.
        (stringify!($function), |$a| unsafe { $function($($argument),*) })
    };
}

const STREAM: *mut c_void = null_mut();

unsafe extern "C" fn ignore(_: *mut c_void, _: i32, _: *const c_char) {}

fn workers_config() -> avsg_workers_config {
    avsg_workers_config { threads: 1, ..sized() }
}

#[rustfmt::skip]
const CALLS: &[Call] = &[
    call!(a, avsg_pool_create(a.pointer(Struct, &mut pool_config()), a.pointer(Words, &mut null_mut()))),
    call!(a, avsg_pool_open(a.pointer(Struct, &mut sized()), a.pointer(Words, &mut null_mut()))),
    call!(a, avsg_pool_get_info(a.handle("pool"), a.pointer(Struct, &mut sized()))),
    call!(a, avsg_pool_get_chunks(a.handle("pool"), null_mut(), 0, a.pointer(Words, &mut 0))),
    call!(a, avsg_pool_get_chunks(a.handle("pool"), a.pointer(Words, &mut avsg_chunk { data: null_mut(), bytes: 0 }), 9, &mut 0)),
    call!(a, avsg_pool_get_session(a.handle("pool"), 0, a.pointer(Struct, &mut sized()))),
    call!(a, avsg_pool_commit_session(a.handle("pool"), 0, a.pointer(Struct, &mut sized()))),
    call!(a, avsg_pool_write_tokens(a.handle("pool"), 0, a.pointer(Bytes, &mut [0u8; 8]).cast(), 8)),
    call!(a, avsg_pool_read_tokens(a.handle("pool"), 0, a.pointer(Bytes, &mut [0u8; 8]).cast(), 8)),
    ("avsg_pool_flush", |a| avsg_pool_flush(a.handle("pool"))),
    ("avsg_pool_demote", |a| avsg_pool_demote(a.handle("pool"))),
    ("avsg_pool_destroy", |a| avsg_pool_destroy(a.handle("pool"))),
    call!(a, avsg_pool_write_row(a.handle("pool"), a.number("layer", 0, 2), a.number("row", 0, ROWS), a.pointer(Bytes, &mut [0u8; 128]).cast(), a.number("bytes", ROW, ROW + 1).min(128))),
    call!(a, avsg_pool_read_row(a.handle("pool"), a.number("layer", 0, 2), a.number("row", 0, ROWS), a.pointer(Bytes, &mut [0u8; 128]).cast(), a.number("bytes", ROW, ROW + 1).min(128))),
    call!(a, avsg_pool_write_rows(a.handle("pool"), a.list("layer", &mut 0), 1, a.number("row", 0, ROWS), a.pointer(Bytes, &mut [0u8; 128]).cast(), a.number("bytes", ROW, ROW + 1).min(128))),
    call!(a, avsg_pool_read_rows(a.handle("pool"), a.list("layer", &mut 0), 1, a.number("row", 0, ROWS), a.pointer(Bytes, &mut [0u8; 128]).cast(), a.number("bytes", ROW, ROW + 1).min(128))),
    call!(a, avsg_pool_get_row(a.handle("pool"), a.number("layer", 0, 2), a.number("segment", 0, 2), a.number("row", 0, ROWS), a.pointer(Words, &mut null_mut()))),
    call!(a, avsg_pool_export(a.handle("pool"), a.pointer(Bytes, &mut [0u8; 128]).cast(), 112, a.pointer(Words, &mut 0))),
    call!(a, avsg_pool_import(a.pointer(Bytes, &mut [0u8; 128]).cast(), 112, 0, 0, a.pointer(Words, &mut null_mut()))),
    call!(a, avsg_workers_create(a.pointer(Struct, &mut workers_config()), a.pointer(Words, &mut null_mut()))),
    ("avsg_workers_destroy", |a| avsg_workers_destroy(a.handle("workers"))),
    call!(a, avsg_get_memory(&a.config, a.pointer(Struct, &mut pool_config()), a.number("max_tokens", 1, (1 << 20) + 1), a.number("requests", 1, (1 << 20) + 1), 1, a.pointer(Struct, &mut sized()))),
    call!(a, avsg_engine_create(a.pointer(Struct, &mut { a.config }), a.handle("pool"), a.pointer(Words, &mut null_mut()))),
    call!(a, avsg_engine_create(&avsg_engine_config { workers: a.handle("workers"), ..engine_config() }, without_provenance_mut(a.handles[0]), &mut null_mut())),
    call!(a, avsg_engine_get_info(a.handle("engine"), a.pointer(Struct, &mut sized()))),
    call!(a, avsg_engine_get_stats(a.handle("engine"), a.pointer(Struct, &mut sized()))),
    call!(a, avsg_engine_get_used_slots(a.handle("engine"), a.number("indexer", 0, 1), a.pointer(Words, &mut [0; 2]).cast(), 2)),
    call!(a, avsg_engine_get_buffer(a.handle("engine"), a.number("layer", 0, 2), a.number("segment", 0, 2), a.pointer(Struct, &mut sized()))),
    call!(a, avsg_engine_get_page_table(a.handle("engine"), a.list("state", &mut 0), 1, a.number("page", 0, 129), a.pointer(Words, &mut 0), 1, a.pointer(Words, &mut 0))),
    call!(a, avsg_engine_get_held(a.handle("engine"), a.number("indexer", 0, 1), a.number("state", 0, 2), 1, 0, a.number("", 1, 65), a.pointer(Words, &mut 0), 1)),
    ("avsg_engine_invalidate", |a| avsg_engine_invalidate(a.handle("engine"), a.number("state", 0, 2), a.number("", 0, 1 << 24), a.number("", 1 << 24, (1 << 24) + 1))),
    ("avsg_engine_discard", |a| avsg_engine_discard(a.handle("engine"), a.handle("plan"))),
    call!(a, avsg_engine_load(a.handle("engine"), a.pointer(Struct, &mut sized()), a.handle("plan"))),
    call!(a, avsg_engine_load(a.handle("engine"), &avsg_load { reserved: a.number("reserved", 0, 1) as u32, indexer: a.number("indexer", 0, 1), state: a.number("state", 0, 2).min(1 << 30) as i32, seq_len: a.number("seq_len", 0, usize::MAX) as i32, block_table: avsg_i32s { data: &0, len: 1 }, ..sized() }, a.handle("plan"))),
    call!(a, avsg_engine_fork(a.handle("engine"), a.number("state", 0, 2), 1, a.list("state", &mut 0), a.pointer(Words, &mut 1), 1)),
    call!(a, avsg_engine_plan(a.handle("engine"), a.pointer(Struct, &mut a.owned.batch()), a.handle("plan"), STREAM)),
    call!(a, avsg_engine_transfer(a.handle("engine"), a.handle("plan"), a.list("layer", &mut 0), 1, &a.owned.fresh(), STREAM)),
    call!(a, avsg_engine_begin(a.handle("engine"), a.handle("plan"), a.list("layer", &mut 0), 1, &a.owned.fresh(), STREAM)),
    call!(a, avsg_engine_test(a.handle("engine"), a.handle("plan"), a.pointer(Words, &mut 0))),
    ("avsg_engine_wait", |a| avsg_engine_wait(a.handle("engine"), a.handle("plan"))),
    call!(a, avsg_engine_step(a.handle("engine"), a.pointer(Struct, &mut a.owned.batch()), a.handle("plan"), a.number("layer", 0, 2), &a.owned.fresh(), STREAM)),
    call!(a, avsg_engine_append(a.handle("engine"), a.pointer(Struct, &mut a.owned.batch()), a.list("layer", &mut 0), 1, a.pointer(Struct, &mut a.owned.fresh()), STREAM)),
    ("avsg_engine_destroy", |a| avsg_engine_destroy(a.handle("engine"))),
    call!(a, avsg_plan_create(a.handle("engine"), a.number("max_tokens", 1, (1 << 20) + 1), a.number("requests", 1, (1 << 20) + 1), a.pointer(Words, &mut null_mut()))),
    call!(a, avsg_plan_get_arrays(a.handle("plan"), HOST, a.pointer(Struct, &mut sized()))),
    call!(a, avsg_plan_get_arrays(a.handle("plan"), DEVICE, a.pointer(Struct, &mut sized()))),
    call!(a, avsg_plan_get_counters(a.handle("plan"), a.pointer(Struct, &mut sized()))),
    call!(a, avsg_plan_get_lost_ids(a.handle("plan"), a.number("request", 0, 2), null_mut(), 0, a.pointer(Words, &mut 0))),
    ("avsg_plan_destroy", |a| avsg_plan_destroy(a.handle("plan"))),
    call!(a, avsg_set_log(Some(ignore), null_mut(), a.number("level", 1, 5) as i32)),
];

#[test]
fn every_function_refuses_every_kind_of_invalid_argument() {
    each_device(refuse_arguments);
}

fn refuse_arguments(device: &'static CStr) {
    let (handles, config, owned) = (Handles::on(device), config_on(device), Arrays::new(0));
    let (destroyed, mut workers) = (Handles::on(device), null_mut());
    // SAFETY: the struct has its `size` set.
    ok(unsafe { avsg_workers_create(&workers_config(), &mut workers) });
    ok(avsg_workers_destroy(workers));
    let stale = addresses(&destroyed, workers);
    destroyed.destroy();
    expect_step_works(&handles, 1);
    // This memory is aligned and no shorter than any struct or array here.
    let mut memory = [0u64; 64];
    for &(name, call) in CALLS {
        let make = |replaced| {
            let taken = Vec::new();
            let valid = addresses(&handles, null_mut());
            let mut a = Arguments { handles: valid, config, owned: &owned, taken, replaced };
            (call(&mut a), a.taken)
        };
        for (at, argument) in make(None).1.into_iter().enumerate() {
            println!("{name}, argument {at}");
            let with = |bits| make(Some((at, bits))).0;
            match argument {
                Handle(kind) => {
                    let n = index(kind);
                    // Without workers an engine starts threads of its own.
                    if name.ends_with("_destroy") {
                        ok(with(0));
                    } else if kind != "workers" {
                        let parts = [&format!("{kind} is NULL"), "create one"];
                        expect_error(with(0), AVSG_NULL, &parts);
                    }
                    expect_error(with(stale[n]), AVSG_HANDLE, &[kind, "it was destroyed"]);
                    let other = addresses(&handles, null_mut())[(n + 1) % 3];
                    expect_error(with(other), AVSG_HANDLE, &[kind, "another kind"]);
                    let address = (&raw const owned).addr();
                    for bits in [1, 2, 5, 8, 64, (1 << 47) - 1, usize::MAX, address] {
                        assert_eq!(with(bits), AVSG_HANDLE, "{bits:#x}: {}", last_error());
                    }
                }
                Number(what, first) => {
                    for n in [first, usize::MAX / 2, usize::MAX] {
                        expect_error(with(n), AVSG_INVALID, &[what, " is "]);
                    }
                }
                Bytes => expect_error(with(0), AVSG_NULL, &["is NULL"]),
                Struct | Words => {
                    expect_error(with(0), AVSG_NULL, &["is NULL"]);
                    let address = memory.as_mut_ptr().expose_provenance();
                    expect_error(with(address + 1), AVSG_INVALID, &["must be a multiple of"]);
                    let sizes = [0, 8, 1 << 40, u64::MAX];
                    for size in sizes.into_iter().filter(|_| matches!(argument, Struct)) {
                        memory[0] = size;
                        let parts = [&format!(".size is {size}")[..], "sizeof"];
                        let address = memory.as_mut_ptr().expose_provenance();
                        expect_error(with(address), AVSG_SIZE, &parts);
                    }
                }
            }
        }
    }
    expect_step_works(&handles, 2);
    handles.destroy();
}

fn addresses(handles: &Handles, workers: *mut avsg_workers) -> [usize; 4] {
    [handles.pool.addr(), handles.engine.addr(), handles.plan.addr(), workers.addr()]
}

#[test]
fn the_calls_above_are_of_every_function_of_the_header() {
    let header = include_str!("../../../include/avsg.h");
    let declared = header.lines().filter_map(|line| line.strip_prefix("avsg_status "));
    let names: Vec<&str> = declared.filter_map(|rest| rest.split('(').next()).collect();
    assert!(names.len() > 30, "{names:?}");
    let listed = |name: &&str| CALLS.iter().any(|(listed, _)| listed == name);
    let missing: Vec<_> = names.into_iter().filter(|name| !listed(name)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}
