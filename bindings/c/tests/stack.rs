//! Every call works on the smallest stack that a thread can have, 16 KiB (PTHREAD_STACK_MIN), but those that
//! make or open a pool in a file, which take 32 KiB. Only optimised code is that small (`cargo test --release -p
//! avsg-capi --test stack`); a debug build has a larger limit, which finds the buffers and copies that are too
//! large in both. The tests are a program of their own, because thread-local variables of others would count, and a choice
//! that another test has measured would not be measured on this stack.

use std::ffi::c_void;
use std::mem::zeroed;
use std::ptr::{null, null_mut};

use avsg::disk::PoolFile;
use avsg_capi::avsg_status::AVSG_OK;
use avsg_capi::*;
use avsg_capi_testkit::caller_memory::{buffer, layout, memory, part, region};
use avsg_capi_testkit::device::c_path;
use avsg_capi_testkit::*;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::scratch::{Scratch, adapted};
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::tier::SEED;
use libc::{
    pthread_attr_destroy, pthread_attr_init, pthread_attr_setstack, pthread_create, pthread_join,
};

/// The most bytes that a call may use of its thread's stack, thread-local variables included.
const MOST: usize = if cfg!(debug_assertions) { 48 << 10 } else { 16 << 10 };
/// The same for the calls that make or open a pool in a file.
const MOST_OF_FILE: usize = MOST + (16 << 10);
/// Bytes of the stack that calls are measured on: kernels without optimisation take 300 KiB.
const STACK: usize = 4 << 20;
const UNUSED: u8 = 0xA7;

/// What a thread of C runs.
type Call<'a> = dyn FnMut() -> avsg_status + 'a;

extern "C" fn start(call: *mut c_void) -> *mut c_void {
    // SAFETY: `check` passes the address of a call that it keeps until the thread has ended.
    let call = unsafe { &mut *call.cast::<&mut Call<'_>>() };
    assert_eq!(call(), AVSG_OK, "{}", last_error());
    null_mut()
}

/// Runs a call on a thread of its own. It must succeed and may use at most `most` bytes of the thread's stack.
fn check(stack: &mut [u8], name: &str, most: usize, mut call: &mut Call<'_>) {
    stack.fill(UNUSED);
    let (at, len, mut thread) = (stack.as_mut_ptr().cast(), stack.len(), 0);
    // SAFETY: the stack is page-aligned and used by this thread alone until it is joined, and the call
    // lives as long.
    unsafe {
        let mut attributes = zeroed();
        assert_eq!(pthread_attr_init(&mut attributes), 0);
        assert_eq!(pthread_attr_setstack(&mut attributes, at, len), 0);
        let argument = (&raw mut call).cast();
        assert_eq!(pthread_create(&mut thread, &attributes, start, argument), 0);
        assert_eq!(pthread_join(thread, null_mut()), 0);
        assert_eq!(pthread_attr_destroy(&mut attributes), 0);
    }
    let pages = stack.chunks(4096).take_while(|page| *page == [UNUSED; 4096]).count() * 4096;
    let rest = &stack[pages..];
    let used = rest.len() - rest.iter().position(|&byte| byte != UNUSED).unwrap_or(rest.len());
    println!("{used:6} of {most} bytes: {name}");
    assert!(used <= most, "{name} used {used} bytes of the stack, which may be {most}");
}

/// Returns memory for a stack, which is never freed.
fn new_stack() -> &'static mut [u8] {
    // SAFETY: the memory has that many bytes, and nothing else uses it.
    unsafe { std::slice::from_raw_parts_mut(memory(STACK), STACK) }
}

/// Checks a call under the name of its function.
macro_rules! check {
    ($stack:ident, $most:expr, $function:ident($($argument:expr),*)) => {
        check($stack, stringify!($function), $most, &mut || $function($($argument),*))
    };
}

#[test]
fn calls_fit_the_smallest_stack_of_a_thread() {
    let (mut pool, mut engine, mut plan) = (null_mut(), null_mut(), null_mut());
    let (mut imported, mut workers, mut laid_out) = (null_mut(), null_mut(), null_mut());
    let of_pool = pool_config();
    let config = engine_config();
    // Optimised code also measures the machines and the copiers on this stack.
    let chosen = cfg!(debug_assertions);
    if chosen {
        Handles::on_cpu().destroy();
    }
    let of_workers = avsg_workers_config { threads: 2, ..sized() };
    let region = region(memory(2 * ROWS * ROW), 2 * ROWS * ROW);
    let parts = [part(0, 0, ROW), part(1, 24, ROW)];
    let layout = layout([2 * ROW; 2], &[region], &parts);
    let in_layout = avsg_pool_config { layout: &layout, ..of_pool };
    let slots = memory(4 * 128 * 24);
    let buffer = buffer([0, 1, 2, 3].map(|n| slots.wrapping_add(n * 128 * 24)), [24, 16]);
    let own = avsg_engine_config { buffer: &buffer, ..config };
    let owned = Arrays::new(1);
    let (batch, layers, fresh) = (owned.batch(), [0, 1], [owned.fresh(); 2]);
    let (layers, fresh) = (layers.as_ptr(), fresh.as_ptr());
    let (mut desc, mut fd) = ([0; AVSG_POOL_DESC_BYTES], -1);
    let stack = new_stack();
    // SAFETY: the structs have their `size` set, the arrays have the lengths beside them, the memory is
    // never freed, and each out-pointer is a local variable that only one call uses at a time.
    unsafe {
        check(stack, "no call", MOST, &mut || AVSG_OK);
        check!(stack, MOST, avsg_get_memory(&config, &of_pool, 4, 2, 8, &mut sized()));
        check!(stack, MOST, avsg_pool_create(&of_pool, &mut pool));
        check!(stack, MOST, avsg_workers_create(&of_workers, &mut workers));
        check!(stack, MOST, avsg_engine_create(&config, pool, &mut engine));
        check!(stack, MOST, avsg_plan_create(engine, 4, 2, &mut plan));
        if !chosen {
            check!(stack, MOST, avsg_engine_step(engine, &batch, plan, 0, fresh, null_mut()));
            check!(stack, MOST, avsg_engine_transfer(engine, plan, layers, 2, fresh, null_mut()));
        }
        check!(stack, MOST, avsg_engine_append(engine, &batch, layers, 2, fresh, null_mut()));
        check!(stack, MOST, avsg_engine_fork(engine, 0, 1, &1, &7, 1));
        check!(stack, MOST, avsg_engine_get_held(engine, 0, 1, 7, 0, 64, &mut 0, 1));
        check!(stack, MOST, avsg_engine_invalidate(engine, 0, 1, 2));
        check!(stack, MOST, avsg_engine_get_info(engine, &mut sized()));
        check!(stack, MOST, avsg_plan_destroy(plan));
        check!(stack, MOST, avsg_engine_destroy(engine));
        check!(stack, MOST, avsg_engine_create(&own, pool, &mut engine));
        check!(stack, MOST, avsg_engine_destroy(engine));
        check!(stack, MOST, avsg_pool_export(pool, desc.as_mut_ptr(), desc.len(), &mut fd));
        check!(stack, MOST, avsg_pool_import(desc.as_ptr(), desc.len(), fd, 0, &mut imported));
        check!(stack, MOST, avsg_pool_create(&in_layout, &mut laid_out));
        for handle in [pool, imported, laid_out] {
            check!(stack, MOST, avsg_pool_destroy(handle));
        }
        check!(stack, MOST, avsg_workers_destroy(workers));
    }
}

/// K and the rows of the pool in a file.
const WIDE: usize = 2048;
const FILE_ROWS: usize = 4096;

/// Returns a batch of four requests, each of which misses `misses` rows in random order.
fn batch_of_misses(generation: i32, misses: usize) -> OwnedBatch {
    let (mut owned, mut random) = (OwnedBatch::new(WIDE, 0), SplitMix64::new(SEED));
    for state in 0..4 {
        let mut ids: Vec<i32> = (0..FILE_ROWS as i32).collect();
        random.shuffle(&mut ids);
        ids.truncate(misses);
        ids.resize(WIDE, -1);
        owned.push([state, generation, -1, FILE_ROWS as i32], &[ids]);
    }
    owned
}

#[test]
fn calls_over_a_file_fit_the_smallest_stack_with_lists_of_all_sizes() {
    let (folder, stack) = (Scratch::new(), new_stack());
    let buffered = adapted(PoolFile::new(folder.path())).buffered.into();
    // Layers that share records, and layers with records of their own.
    for (indexers, last, name) in [([0, 0], 0, "shared"), ([0, 1], 1, "own")] {
        let path = c_path(&folder.file(name));
        let mut file = avsg_pool_file { buffered, keep: 1, path: path.as_ptr(), ..sized() };
        (file.layer_indexer, file.layer_indexers) = (indexers.as_ptr(), 2);
        let of_pool = avsg_pool_config { rows: FILE_ROWS, file: &file, ..pool_config() };
        let mut config = avsg_engine_config { tokens: 1, page: 0, states: 4, ..engine_config() };
        (config.k, config.slots) = (WIDE as u32, WIDE as u32);
        (config.layer_indexer, config.layer_indexers) = (indexers.as_ptr(), 2);
        let (mut pool, mut engine, mut plan) = (null_mut(), null_mut(), null_mut());
        let bytes = row(0, 0);
        // SAFETY: the structs have their `size` set, the arrays have the lengths beside them, the string is
        // alive, and each out-pointer is a local variable that only one call uses at a time.
        unsafe {
            check!(stack, MOST_OF_FILE, avsg_pool_create(&of_pool, &mut pool));
            ok(avsg_pool_destroy(pool));
            check!(stack, MOST_OF_FILE, avsg_pool_open(&file, &mut pool));
            check!(stack, MOST, avsg_get_memory(&config, &of_pool, 4, 4, 0, &mut sized()));
            let write = |layer, n| avsg_pool_write_row(pool, layer, n, bytes.as_ptr().cast(), ROW);
            check!(stack, MOST, write(0, 0));
            (0..2 * FILE_ROWS).for_each(|n| ok(write(n % 2, n / 2)));
            check!(stack, MOST, avsg_pool_flush(pool));
            check!(stack, MOST, avsg_engine_create(&config, pool, &mut engine));
            check!(stack, MOST, avsg_plan_create(engine, 4, 4, &mut plan));
            let sizes = (0..64).chain((64..WIDE).step_by(173)).chain([WIDE]);
            for (generation, misses) in (1..).zip(sizes) {
                let owned = batch_of_misses(generation, misses);
                let batch = avsg_batch { indexer: last, ..c_batch(&owned) };
                ok(avsg_engine_plan(engine, &batch, plan, null_mut()));
                // The first record in the file is still in the queue of writes.
                if let Some(&first) = owned.ids.iter().filter(|id| **id >= 0).min() {
                    (0..2).for_each(|layer| ok(write(layer, first as usize)));
                }
                check(stack, &format!("engine_transfer of 4 x {misses}"), MOST, &mut || {
                    avsg_engine_transfer(engine, plan, &1, 1, null(), null_mut())
                });
            }
            check!(stack, MOST, avsg_plan_destroy(plan));
            check!(stack, MOST, avsg_engine_destroy(engine));
            check!(stack, MOST, avsg_pool_destroy(pool));
        }
    }
}
