//! Device buffers in memory of the caller: on the simulated device every row is at the address that the strides and the
//! table say, no other byte changes, and global indices name that place, as the random calls of `bindings/c/tests/fuzz` check on
//! the CPU; and those that are refused.

use std::sync::Arc;

use avsg::ascend::acl::DeviceMemory;
use avsg::buffer::CallerBuffer;
use avsg::device::kernels::{Arg, KernelName};
use avsg::device::params::Params;
use avsg::device::request::{status, summary};
use avsg::engine::{Config, Engine};
use avsg::pool::{Chunk, HostLayout, HostPool, Part, PoolConfig, Region};
use avsg::rows::{RowFormat, Strides};
use avsg_sim::Options;
use avsg_testkit::{exact, fixture, tier};

use crate::harness::{can_run_emitted_kernels, engine_over, expect_refusal, in_session, seeded};
use crate::slot_shapes::{
    BEFORE, K, LAYERS, ROOM, ROWS, Run, Shape, batch, config, on_device, own_slots, pool, shapes,
    shuffled,
};
use crate::wrong_words::corrupt_next;

const HOST: Run = Run { queued: false, one_launch: true, emitted: false };

/// Runs with the emitted kernels: those in Rust have every way to launch them.
const EMITTED: [Run; 2] =
    [Run { emitted: true, ..HOST }, Run { queued: true, one_launch: false, emitted: true }];

/// Returns the global index of each slot that a run without a base has returned.
fn global(shape: &Shape, base: i32, own: &[i32]) -> Vec<i32> {
    let index = |(at, &slot): (usize, &i32)| {
        let state = usize::from(at / K % 4 < 2);
        let index = usize::try_from(slot).ok().and_then(|slot| shape.index(state, slot));
        index.map_or(-1, |index| base + index as i32)
    };
    own.iter().enumerate().map(index).collect()
}

#[test]
fn every_row_is_where_the_callers_strides_and_table_say() {
    let own = own_slots();
    let mut runs = Vec::new();
    // The layouts are indexed alike, so that one of them with another base is enough.
    let cases = shapes().into_iter().map(|shape| (shape, 70_000));
    for (shape, base) in cases.chain([(shapes().swap_remove(3), 0)]) {
        assert!(on_device(&shape, None, HOST) == own, "{}", shape.name);
        let global = global(&shape, base, &own);
        for (queued, one_launch) in [(false, false), (false, true), (true, false)] {
            let run = Run { queued, one_launch, emitted: false };
            runs.push((shape.clone(), base, run, global.clone()));
        }
    }
    let axes = |(shape, base, run, _): &(Shape, i32, Run, Vec<i32>)| {
        vec![format!("{} {base}", shape.name), format!("{run:?}")]
    };
    for (shape, base, run, global) in tier::cases("buffers of the caller", runs, 18, axes) {
        assert!(on_device(&shape, Some(base), run) == global, "{}, {run:?}", shape.name);
    }
}

/// The rows of a bad block are copied nowhere, the slots of the state do not change, and its global
/// indices are -1.
#[test]
fn a_device_leaves_out_the_rows_of_a_bad_block_and_returns_global_indices() {
    let own = own_slots();
    let bad = [-1, 20, i32::MIN, i32::MAX].map(with_bad_block);
    for shape in &bad {
        let left_out =
            own.iter().zip(global(shape, 7, &own)).filter(|(own, at)| **own >= 0 && *at < 0);
        assert!(left_out.count() > 10, "some slots are in the block");
    }
    let bases = [None, Some(1 << 20)];
    let on_rust = bad.iter().flat_map(|shape| bases.map(|base| (shape.clone(), HOST, base)));
    let others = [bad[0].clone(), shuffled()].into_iter().chain(shapes().split_off(6));
    let on_emitted = others.flat_map(|shape| {
        EMITTED.into_iter().zip(bases).map(move |(run, base)| (shape.clone(), run, base))
    });
    for (shape, run, base) in on_rust.chain(on_emitted) {
        if run.emitted && !can_run_emitted_kernels() {
            return;
        }
        let expected = base.map_or(own.clone(), |base| global(&shape, base, &own));
        assert!(on_device(&shape, base, run) == expected, "{}, {run:?}, {base:?}", shape.name);
    }
}

/// Returns a shape in which entry 12 names no block. The entry is of state 1 and slots 64..80.
fn with_bad_block(entry: i32) -> Shape {
    let mut shape = shuffled();
    shape.table.as_mut().unwrap()[12] = entry;
    shape
}

#[test]
fn on_the_cpu_a_step_or_fork_with_a_bad_block_is_refused_and_changes_nothing() {
    let shape = with_bad_block(20);
    let memory = vec![BEFORE; LAYERS * 2 * ROOM].leak();
    let caller = shape.caller(memory.as_mut_ptr(), shape.table.clone().unwrap().leak().as_ptr());
    let mut engine = Engine::new(config(Some(caller), None), pool()).unwrap();
    assert_eq!(engine.buffer().bytes(), 0);
    let of_pool = PoolConfig::new(LAYERS, ROWS, engine.pool().format().clone());
    assert_eq!(Engine::bytes_needed(engine.config(), &of_pool).unwrap().0, 0);
    let mut plan = engine.new_plan(4, 3).unwrap();
    let before = engine.read_table(0, 1).unwrap().to_vec();
    let parts = ["block is 20", "entry 4 of state 1", "has 20 blocks"];
    expect_refusal(engine.step(&batch(0).batch(), &mut plan, 0, None), &parts);
    expect_refusal(engine.fork(0, 1, 1, 9), &parts);
    assert!(engine.read_table(0, 1).unwrap() == before);
    assert!(memory.iter().all(|&byte| byte == BEFORE));
    assert!(engine.buffer().view(1, 0, 0).unwrap().ptr(70).is_null());
    assert!(engine.buffer().slot_bytes(1, 0, 70, &mut [0; 69]).is_err());
    assert_eq!(engine.buffer().index(1, 70), None);
    assert_eq!(engine.buffer().index(0, 17), Some(10 * 16 + 1));
}

#[test]
fn buffers_that_do_not_fit_the_engine_are_refused() {
    let refuse = |bases, strides: &[Strides], table: Option<(usize, usize)>, parts: &[&str]| {
        let memory = vec![BEFORE; LAYERS * 2 * ROOM].leak();
        let bases = vec![memory.as_mut_ptr(); bases];
        // SAFETY: the engine is refused.
        let mut caller = unsafe { CallerBuffer::new(&bases, strides).unwrap() };
        if let Some((len, blocks)) = table {
            let table = vec![0; len].leak();
            // SAFETY: the engine is refused.
            caller = unsafe { caller.with_block_table(table.as_ptr(), len, blocks) };
        }
        expect_refusal(Engine::new(config(Some(caller), None), pool()), parts);
    };
    let good = shapes()[3].strides;
    refuse(3, &good, None, &["buffer bases is 3", "need 4"]);
    refuse(4, &good[..1], None, &["strides is 1", "has 2 segments"]);
    refuse(4, &[Strides { row: 55, ..good[0] }, good[1]], None, &["row stride is 55"]);
    refuse(4, &[Strides { block_rows: 8, ..good[0] }, good[1]], None, &["block slots is 16"]);
    let wide = good.map(|strides| Strides { block_rows: 256, ..strides });
    refuse(4, &wide, None, &["block slots is 256", "divide S = 128"]);
    let far = [Strides::rows(56), Strides::rows(1 << 60)];
    refuse(4, &far, None, &["slots of layer 0, segment 1 from", "address space"]);
    refuse(4, &good, None, &["address is", "have the same bytes"]);
    refuse(4, &good, Some((15, 20)), &["table of blocks is 15", "need 16 words"]);
    refuse(4, &good, Some((16, 0)), &["blocks of the buffer is 0"]);
    refuse(4, &shapes()[0].strides, Some((16, 20)), &["block slots is 0", "a table has blocks"]);
    let with_base = |base| Engine::new(config(None, Some(base)), pool());
    expect_refusal(with_base(-1), &["slot_base is -1"]);
    expect_refusal(with_base(i32::MAX - 255), &["256 slots behind it fit int32"]);
    assert!(with_base(i32::MAX - 256).is_ok());
}

/// Rows and slots that lie between each other are exact, and a byte that two of them share is refused, on
/// the device, too, whose kernels read the rows at other addresses.
#[test]
fn slots_may_lie_between_rows_but_not_share_their_bytes() {
    const PERIOD: usize = 2 * LAYERS * 69 + 3;
    let format = RowFormat::segments(&[56, 13]).unwrap();
    let of_pool = PoolConfig::new(LAYERS, ROWS, format);
    let (layers, rows) = (0..LAYERS, 0..ROWS);
    let part = |segment, offset| {
        let (layers, rows) = (layers.clone(), rows.clone());
        Part { segment, layers, rows, region: 0, offset, layer_stride: 69 }
    };
    let layout_in = |base: *mut u8, device_address| {
        let memory = Chunk::new(base, ROWS * PERIOD).unwrap();
        let regions = [Region { memory, device_address }];
        let strides = [Strides::rows(PERIOD); 2];
        let parts = [part(0, 0), part(1, 56)];
        let layout = HostLayout { regions: &regions, strides: &strides, parts: &parts };
        // SAFETY: the memory is never freed, and no step runs while the test accesses it.
        HostPool::new(&unsafe { of_pool.clone().with_layout(&layout) }.unwrap()).unwrap()
    };
    // The rows of every layer, the slots of every layer, and 3 bytes.
    let caller = |base: *mut u8, less: usize| {
        let at = |n: usize| base.wrapping_add((LAYERS + n / 2) * 69 + n % 2 * 56 - less);
        let bases: Vec<*mut u8> = (0..2 * LAYERS).map(at).collect();
        // SAFETY: the memory is never freed, and no step runs while the test accesses it.
        unsafe { CallerBuffer::new(&bases, &[Strides::rows(PERIOD); 2]) }.unwrap()
    };
    let text = ["slots of layer 0, segment 0", "rows of layer 1, segment 1 from"];
    let base = vec![BEFORE; ROWS * PERIOD].leak().as_mut_ptr();
    let pool = Arc::new(layout_in(base, None));
    fixture::fill(&pool, ROWS, |layer, row| (row as i32, layer as u32));
    expect_refusal(Engine::new(config(Some(caller(base, 1)), None), Arc::clone(&pool)), &text);
    let mut engine = Engine::new(config(Some(caller(base, 0)), None), pool).unwrap();
    let mut plan = engine.new_plan(4, 3).unwrap();
    for step in 0..6 {
        let owned = batch(step);
        engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
        engine.transfer(&mut plan, 1, None).unwrap();
        for layer in 0..LAYERS {
            let content = |_, id| (id, layer as u32);
            assert_eq!(exact::check_step(&engine, &plan, &owned, layer, content), 3 * K);
        }
    }
    in_session(Options::default(), |session, context| {
        let memory = DeviceMemory::zeroed(context, ROWS * PERIOD).unwrap();
        let create = |less| {
            let config = config(Some(caller(memory.address() as *mut u8, less)), None);
            // The host addresses of the rows are those of the pool above; kernels find them on the device.
            engine_over(session, context, &config, layout_in(base, Some(memory.address())))
        };
        expect_refusal(create(1), &text);
        create(0).unwrap().close().unwrap();
    });
}

/// Kernels with a lower limit of blocks say so in a status bit, and the host names the blocks and the limit.
#[test]
fn kernels_that_have_no_room_for_a_table_are_an_error() {
    in_session(seeded(5), |session, context| {
        let memory = DeviceMemory::zeroed(context, LAYERS * 2 * ROOM).unwrap();
        let (shape, table) = (shuffled(), DeviceMemory::zeroed(context, 64).unwrap());
        let caller = shape.caller(memory.address() as *mut u8, table.address() as *const i32);
        let config = config(Some(caller), Some(5));
        let mut engine = engine_over(session, context, &config, pool()).unwrap();
        let mut plan = engine.new_plan(4, 3).unwrap();
        let (word, bit) = (summary::STATUS as usize, status::TOO_MANY_SLOT_BLOCKS);
        corrupt_next(session, KernelName::Plan, Arg::Summary, word, bit);
        let parts = ["blocks of a state is 8", "those of this version 512", "pass larger blocks"];
        expect_refusal(engine.plan(&batch(0).batch(), &mut plan), &parts);
        drop(plan);
        engine.close().unwrap();
    });
}

#[test]
fn a_device_refuses_more_blocks_per_state_than_a_core_has_room_for() {
    let config = |slots: usize| {
        let single = [Strides { block_rows: 1, block: 64, row: 64 }; 2];
        // SAFETY: no step runs, so nothing accesses the buffer or the table.
        let caller = unsafe {
            let bases = [1, 2, 3, 4].map(|at| (at << 20) as *mut u8);
            let caller = CallerBuffer::new(&bases, &single).unwrap();
            caller.with_block_table((5 << 20) as *const i32, 2 * slots, 2 * slots)
        };
        let params = Params::wide(K as u32, 2, slots as u32);
        Config { params, ..config(Some(caller), None) }
    };
    // The CPU has no such limit.
    Engine::new(config(1024), pool()).unwrap();
    in_session(Options::default(), |session, context| {
        let create = |slots: usize| engine_over(session, context, &config(slots), pool());
        create(512).unwrap().close().unwrap();
        let parts = ["blocks of a state is 1024", "at most 512", "pass larger blocks"];
        expect_refusal(create(1024), &parts);
    });
}
