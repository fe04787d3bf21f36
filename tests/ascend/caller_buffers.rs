//! Device buffers in memory of the caller, on the CPU and on the simulated device: every row is at
//! the address that the strides and the table say, no other byte changes, and global indices name
//! that place.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use avsg::ascend::acl::DeviceMemory;
use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::buffer::CallerBuffer;
use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::pool::{Chunk, HostLayout, HostPool, Part, PoolConfig, Region};
use avsg::rows::{RowFormat, Strides};
use avsg_linker::ascend::ascendc;
use avsg_linker::ascend::kernels::Abi;
use avsg_sim::{Options, Session};
use avsg_testkit::{exact, fixture};

use crate::harness;
use crate::prerequisites::has_cpp_compiler;
use crate::slot_shapes::{
    Arrays, BEFORE, K, LAYERS, ROOM, Run, batch, config, on_cpu, on_device, pool, shapes, shuffled,
};

const HOST: Run = Run { arrays: Arrays::Host, one_launch: true, emitted: false };

/// Returns all runs with the kernels in Rust or with the emitted ones.
fn runs(emitted: bool) -> impl Iterator<Item = Run> {
    let arrays = [Arrays::Host, Arrays::Device, Arrays::Captured];
    let run = move |arrays| [false, true].map(|one_launch| Run { arrays, one_launch, emitted });
    arrays.into_iter().flat_map(run)
}

#[test]
fn every_row_is_where_the_callers_strides_and_table_say() {
    let own = on_cpu(&shapes()[0], None);
    for shape in shapes() {
        assert!(on_cpu(&shape, None) == own, "{}: the slots of a state do not change", shape.name);
        for run in runs(false) {
            assert!(on_device(&shape, None, run) == own, "{}, {run:?}", shape.name);
        }
    }
}

#[test]
fn a_slot_base_makes_slots_indices_among_all_states() {
    // The layouts are indexed alike, so that one of them with another base is enough.
    let cases = shapes().into_iter().map(|shape| (shape, 70_000));
    for (shape, base) in cases.chain([(shapes().swap_remove(3), 0)]) {
        let own = on_cpu(&shape, None);
        let global = on_cpu(&shape, Some(base));
        let rows = own.chunks(K).zip(global.chunks(K)).enumerate();
        for (row, (own, global)) in rows {
            let state = usize::from(row % 4 < 2);
            for (&own, &global) in own.iter().zip(global) {
                let index = |slot: usize| shape.index(state, slot).unwrap() as i32;
                let expected = usize::try_from(own).map_or(-1, |slot| base + index(slot));
                assert_eq!(global, expected, "{}, row {row}", shape.name);
            }
        }
        for run in runs(false) {
            assert!(on_device(&shape, Some(base), run) == global, "{}, {run:?}", shape.name);
        }
    }
}

#[test]
fn emitted_kernels_find_slots_by_a_table_and_return_global_indices() {
    if !has_cpp_compiler() {
        return;
    }
    let mut wrong = shuffled();
    wrong.table.as_mut().unwrap()[12] = -1;
    let base = Some(1 << 20);
    for shape in
        [shuffled(), shapes().swap_remove(6), shapes().swap_remove(7), shapes().swap_remove(2)]
    {
        let global = on_cpu(&shape, base);
        for run in runs(true) {
            assert!(on_device(&shape, base, run) == global, "{}, {run:?}", shape.name);
        }
    }
    let own = on_device(&wrong, None, HOST);
    assert!(on_device(&wrong, None, Run { emitted: true, ..HOST }) == own);
    let global = on_device(&wrong, base, HOST);
    for run in runs(true) {
        assert!(on_device(&wrong, base, run) == global, "{run:?}");
    }
}

/// Entry 12 is of state 1 and slots 64..80. Its rows are copied nowhere, the slots of the state do not
/// change, and its global indices are -1.
#[test]
fn a_device_leaves_out_the_rows_of_a_bad_block() {
    let own = on_cpu(&shapes()[0], None);
    for entry in [-1, 20, i32::MIN, i32::MAX] {
        let mut shape = shuffled();
        shape.table.as_mut().unwrap()[12] = entry;
        for run in runs(false) {
            assert!(on_device(&shape, None, run) == own, "{entry}, {run:?}");
            let global = on_device(&shape, Some(7), run);
            let mut left_out = 0;
            for (at, (&own, &global)) in own.iter().zip(&global).enumerate() {
                let state = usize::from(at / K % 4 < 2);
                let index = usize::try_from(own).ok().and_then(|slot| shape.index(state, slot));
                assert_eq!(global, index.map_or(-1, |index| index as i32 + 7));
                left_out += usize::from(own >= 0 && index.is_none());
            }
            assert!(left_out > 10, "{left_out} slots are in the block");
        }
    }
}

#[test]
fn on_the_cpu_a_step_or_fork_with_a_bad_block_is_refused_and_changes_nothing() {
    let mut shape = shuffled();
    shape.table.as_mut().unwrap()[12] = 20;
    let memory = vec![BEFORE; LAYERS * 2 * ROOM].leak();
    let caller = shape.on_host(memory.as_mut_ptr());
    let mut engine = Engine::new(config(Some(caller), None), pool()).unwrap();
    let mut plan = engine.new_plan(4, 3).unwrap();
    let before = engine.table(1).to_vec();
    let text = engine.step(&batch(0).batch(), &mut plan, 0, None).unwrap_err().to_string();
    let parts = ["block is 20", "entry 4 of state 1", "has 20 blocks"];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    assert!(engine.table(1) == before && memory.iter().all(|&byte| byte == BEFORE));
    let text = engine.fork(0, 1, 1, 9).unwrap_err().to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    assert!(engine.table(1) == before && memory.iter().all(|&byte| byte == BEFORE));
    assert!(engine.buffer().slot_ptr(1, 0, 0, 70).is_null());
    assert!(engine.buffer().slot_bytes(1, 0, 70, &mut [0; 69]).is_err());
    assert_eq!(engine.buffer().index(1, 70), None);
    assert_eq!(engine.buffer().index(0, 17), Some(10 * 16 + 1));
}

#[test]
fn buffers_that_do_not_fit_the_engine_are_refused() {
    let refuse =
        |bases: usize, strides: &[Strides], table: Option<(usize, usize)>, parts: &[&str]| {
            let memory = vec![BEFORE; LAYERS * 2 * ROOM].leak();
            let bases = vec![memory.as_mut_ptr(); bases];
            // SAFETY: the engine is refused.
            let mut caller = unsafe { CallerBuffer::new(&bases, strides).unwrap() };
            if let Some((len, blocks)) = table {
                let table = vec![0; len].leak();
                // SAFETY: the engine is refused.
                caller = unsafe { caller.with_block_table(table.as_ptr(), len, blocks) };
            }
            let text = Engine::new(config(Some(caller), None), pool()).err().unwrap().to_string();
            assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text:?}");
        };
    let good = shapes()[3].strides;
    refuse(3, &good, None, &["buffer bases is 3", "need 4"]);
    refuse(4, &good[..1], None, &["strides is 1", "has 2 segments"]);
    refuse(4, &[Strides { row: 55, ..good[0] }, good[1]], None, &["row stride is 55"]);
    refuse(4, &[Strides { block_rows: 8, ..good[0] }, good[1]], None, &["block slots is 16"]);
    let wide = good.map(|strides| Strides { block_rows: 256, ..strides });
    refuse(4, &wide, None, &["block slots is 256", "at most S = 128"]);
    refuse(
        4,
        &[Strides::rows(56), Strides::rows(1 << 60)],
        None,
        &["slots of layer 0, segment 1 from", "address space"],
    );
    refuse(4, &good, None, &["address is", "have the same bytes"]);
    refuse(4, &good, Some((15, 20)), &["block table is 15", "need 16 words"]);
    refuse(4, &good, Some((16, 0)), &["blocks of the buffer is 0"]);
    refuse(4, &shapes()[0].strides, Some((16, 20)), &["block slots is 0", "a table has blocks"]);
    let text = Engine::new(config(None, Some(-1)), pool()).err().unwrap().to_string();
    assert!(text.contains("slot_base is -1"), "{text}");
    let text = Engine::new(config(None, Some(i32::MAX - 255)), pool()).err().unwrap().to_string();
    assert!(text.contains("256 slots behind it fit int32"), "{text}");
    assert!(Engine::new(config(None, Some(i32::MAX - 256)), pool()).is_ok());
}

/// Rows and slots that lie between each other are exact, and a byte that two of them share is refused, on
/// the device, too, whose kernels read the rows at other addresses.
#[test]
fn slots_may_lie_between_rows_but_not_share_their_bytes() {
    const PERIOD: usize = 2 * LAYERS * 69 + 3;
    let format = RowFormat::segments(&[56, 13]).unwrap();
    let of_pool = PoolConfig::new(LAYERS, 600, format);
    let part = |segment, offset| Part {
        segment,
        layers: 0..LAYERS,
        rows: 0..600,
        region: 0,
        offset,
        layer_stride: 69,
    };
    let layout_in = |base: *mut u8, device_address| {
        let memory = Chunk::new(base, 600 * PERIOD).unwrap();
        let regions = [Region { memory, device_address }];
        let strides = [Strides::rows(PERIOD); 2];
        let parts = [part(0, 0), part(1, 56)];
        let layout = HostLayout { regions: &regions, strides: &strides, parts: &parts };
        // SAFETY: the memory is never freed, and no step runs while the test accesses it.
        unsafe { HostPool::from_layout(&of_pool, &layout) }.unwrap()
    };
    // The rows of every layer, the slots of every layer, and 3 bytes.
    let caller = |base: *mut u8, less: usize| {
        let at = |n: usize| base.wrapping_add((LAYERS + n / 2) * 69 + n % 2 * 56 - less);
        let bases: Vec<*mut u8> = (0..2 * LAYERS).map(at).collect();
        // SAFETY: the memory is never freed, and no step runs while the test accesses it.
        unsafe { CallerBuffer::new(&bases, &[Strides::rows(PERIOD); 2]) }.unwrap()
    };
    let text = ["slots of layer 0, segment 0", "rows of layer 1, segment 1 from"];
    let base = vec![BEFORE; 600 * PERIOD].leak().as_mut_ptr();
    let pool = Arc::new(layout_in(base, None));
    fixture::fill(&pool, 600, |layer, row| (row as i32, layer as u32));
    let error = Engine::new(config(Some(caller(base, 1)), None), Arc::clone(&pool)).err().unwrap();
    assert!(text.iter().all(|part| error.to_string().contains(part)), "{error}");
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
    let session = Session::new(Options::default());
    let context = simulated::context().unwrap();
    let kernels = harness::install_kernels(&session, &config(None, None));
    let options = AscendOptions::new(Arc::clone(&context)).with_kernels(kernels);
    let memory = DeviceMemory::zeroed(&context, 600 * PERIOD).unwrap();
    // The host addresses of the rows are those of the pool above; kernels find them on the device.
    let pool = layout_in(base, Some(memory.address()));
    let pool = RegisteredPool::new(&context, pool).unwrap();
    for (less, refused) in [(1, true), (0, false)] {
        let config = config(Some(caller(memory.address() as *mut u8, less)), None);
        let made = Engine::on_ascend(config, pool.clone(), &options);
        let error = made.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(text.iter().all(|part| error.contains(part)), refused, "{error}");
        assert_eq!(error.is_empty(), !refused, "{error}");
    }
}

/// Kernels that were built with a lower limit of blocks say so in a status bit and copy nothing, and the
/// host names the blocks and the limit.
#[test]
fn kernels_that_have_no_room_for_a_table_are_an_error_and_copy_nothing() {
    if !has_cpp_compiler() {
        return;
    }
    let kernels = Path::new(env!("CARGO_TARGET_TMPDIR")).join("few_blocks.cpp");
    let all = ascendc(&config(None, None).params, Abi::Direct).unwrap();
    fs::write(&kernels, all.together().replace("> MAX_SLOT_BLOCKS;", "> 7;")).unwrap();
    let session = Session::new(Options { seed: 5, ..Options::default() });
    let context = simulated::context().unwrap();
    let memory = DeviceMemory::new(&context, LAYERS * 2 * ROOM).unwrap();
    memory.write(0, &vec![BEFORE; LAYERS * 2 * ROOM]).unwrap();
    let (shape, table) = (shuffled(), DeviceMemory::zeroed(&context, 64).unwrap());
    let caller = shape.caller(memory.address() as *mut u8, table.address() as *const i32);
    let options = AscendOptions::new(Arc::clone(&context)).with_kernels(kernels);
    let pool = RegisteredPool::new(&context, pool()).unwrap();
    let mut engine = Engine::on_ascend(config(Some(caller), Some(5)), pool, &options).unwrap();
    let mut plan = engine.new_plan(4, 3).unwrap();
    for one_launch in [false, true] {
        let owned = batch(0);
        let done = match one_launch {
            false => engine.plan(&owned.batch(), &mut plan),
            true => engine.step(&owned.batch(), &mut plan, 0, None),
        };
        let text = done.unwrap_err().to_string();
        let parts = ["blocks of a state is 8", "those of this version 512", "pass larger blocks"];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
    let mut bytes = vec![0; LAYERS * 2 * ROOM];
    memory.read(0, &mut bytes).unwrap();
    assert!(bytes.iter().all(|&byte| byte == BEFORE), "a row was copied");
    drop(plan);
    engine.close().unwrap();
    drop((memory, table, options, context));
    assert_eq!(session.leaks(), Vec::<String>::new());
}

#[test]
fn a_device_refuses_more_blocks_per_state_than_a_core_has_room_for() {
    let session = Session::new(Options::default());
    let context = simulated::context().unwrap();
    let single = [Strides { block_rows: 1, block: 64, row: 64 }; 2];
    for (slots, refused) in [(512, false), (1024, true)] {
        // SAFETY: no step runs, so nothing accesses the buffer or the table.
        let caller = unsafe {
            let bases = [1, 2, 3, 4].map(|at| (at << 20) as *mut u8);
            let caller = CallerBuffer::new(&bases, &single).unwrap();
            caller.with_block_table((5 << 20) as *const i32, 2 * slots, 2 * slots)
        };
        let params = Params::wide(K as u32, 2, slots as u32);
        let config = Config { params, ..config(Some(caller), None) };
        let kernels = harness::install_kernels(&session, &config);
        let options = AscendOptions::new(Arc::clone(&context)).with_kernels(kernels);
        let pool = RegisteredPool::new(&context, pool()).unwrap();
        let error = Engine::on_ascend(config, pool, &options).err().map(|e| e.to_string());
        let parts = ["blocks of a state is 1024", "at most 512", "pass larger blocks"];
        let names_all = |text: String| parts.iter().all(|part| text.contains(part));
        assert_eq!(error.is_some_and(names_all), refused, "S = {slots}");
    }
}

/// The CPU device has no such limit: every row is in its block.
#[test]
fn the_cpu_copies_to_more_blocks_than_a_core_has_room_for() {
    let (blocks, room) = (2 * 1024, 2 * 1024 * 64);
    let table: Vec<i32> = (0..blocks).map(|at| (at * 7 + 3) % blocks).collect();
    let mut memory = vec![BEFORE; LAYERS * 2 * room];
    let bases = [0, 1, 2, 3].map(|n| memory[n * room..].as_mut_ptr());
    let single = [Strides { block_rows: 1, block: 64, row: 64 }; 2];
    // SAFETY: the memory and the table live longer than the engine, and nothing else writes them.
    let caller = unsafe {
        let caller = CallerBuffer::new(&bases, &single).unwrap();
        caller.with_block_table(table.as_ptr(), table.len(), table.len())
    };
    let params = Params::wide(K as u32, 2, 1024);
    let config = Config { params, ..config(Some(caller), None) };
    let mut engine = Engine::new(config, pool()).unwrap();
    let mut plan = engine.new_plan(4, 3).unwrap();
    for step in 0..5 {
        let owned = batch(step);
        engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
        assert_eq!(exact::check_step(&engine, &plan, &owned, 0, |_, id| (id, 0)), 3 * K);
        engine.transfer(&mut plan, 1, None).unwrap();
    }
}
