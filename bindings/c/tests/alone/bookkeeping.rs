//! With a caller's allocator the library takes no more from malloc than the bookkeeping that
//! docs/c-api.md lists.

use std::ffi::CStr;
use std::ptr::null_mut;

use avsg::ascend::simulated;
use avsg::device::params::Params;
use avsg_capi::*;
use avsg_capi_testkit::allocator::Counting;
use avsg_capi_testkit::device::{c_path, simulator_library};
use avsg_capi_testkit::*;
use avsg_testkit::{allocations, alone};

const SLOTS: usize = 128;
const STATES: usize = 200;
const LAYERS: usize = 32;
const CHUNKS: usize = 4096;

/// Returns the bytes that docs/c-api.md allows for a pool, an engine with an indexer for each layer,
/// and a plan.
fn allowed() -> usize {
    let lists = size_of::<usize>();
    let table = 69 + SLOTS / 8;
    128 * CHUNKS
        + STATES * (1 + 8 * LAYERS + table * LAYERS)
        + LAYERS * (32 + 4 * 8 + 2 * 8 + lists)
        + 3 * 1024
}

/// Makes the three objects, and returns the bytes that malloc gave for them.
fn taken(device: &'static CStr) -> usize {
    // "ascend" is the simulator as a shared library, whose own allocations are not counted.
    let counting = Counting::on(device);
    let allocator = counting.c();
    let params = Params { page: 16, ..Params::compact(K as u32, 2, SLOTS as u32) };
    let kernels = c_path(&simulated::emit(&params).unwrap());
    let runtime = c_path(&simulator_library());
    let indexers: Vec<u32> = (0..LAYERS as u32).collect();
    // 64 chunks of 16 rows in each layer and segment.
    let mut pool_config = avsg_pool_config { allocator: &allocator, ..pool_config() };
    (pool_config.layers, pool_config.rows, pool_config.chunk_bytes) = (LAYERS, 1024, 400);
    let mut config = avsg_engine_config { allocator: &allocator, ..config_on(device) };
    (config.slots, config.states) = (SLOTS as u32, STATES);
    (config.layer_indexer, config.layer_indexers) = (indexers.as_ptr(), LAYERS);
    let ascend = avsg_ascend { runtime: runtime.as_ptr(), kernels: kernels.as_ptr(), ..sized() };
    if device == c"ascend" {
        config.ascend = &ascend;
    }
    let mut made = Handles::from_raw(null_mut(), null_mut(), null_mut());
    let before = allocations::live_bytes();
    // SAFETY: the structs have their `size` set, the arrays and strings are alive, and the
    // out-pointers are fields of `made`.
    unsafe {
        ok(avsg_pool_create(&pool_config, &mut made.pool));
        ok(avsg_engine_create(&config, made.pool, &mut made.engine));
        ok(avsg_plan_create(made.engine, 4 * STATES, STATES, &mut made.plan));
    }
    let taken = allocations::live_bytes() - before;
    // SAFETY: the struct has its `size` set.
    let info = filled(|to| unsafe { avsg_pool_get_info(made.pool, to) });
    assert_eq!(info.chunks, CHUNKS);
    let given: usize = counting.live().iter().sum();
    println!("{device:?}: {given} bytes from the allocator, {taken} from malloc of {}", allowed());
    assert!(given > 20 * allowed(), "the allocator gave only {given} bytes");
    made.destroy();
    assert_eq!(counting.live(), [0; 3]);
    taken.try_into().unwrap()
}

#[test]
fn malloc_gives_bookkeeping_only() {
    let _turn = alone::turn();
    allocations::check();
    let devices = if have_compiler() { &[c"cpu", c"ascend"][..] } else { &[c"cpu"] };
    for device in devices {
        // The first objects make what stays for the life of a process.
        taken(device);
        assert!(taken(device) <= allowed(), "{device:?}");
    }
}
