//! Pools and device buffers in memory of the caller: on the simulated device every row and slot is at the address that the
//! layout, the strides and the table say, no other byte changes, and global indices name that place, as the random calls of
//! `bindings/c/tests/fuzz` check on the CPU; and those that are refused. That the emitted kernels find slots so is checked by
//! `linker/tests/emitted`.

use std::sync::Arc;

use avsg::ascend::acl::DeviceMemory;
use avsg::buffer::CallerBuffer;
use avsg::device::kernels::{Arg, KernelName};
use avsg::device::params::Params;
use avsg::device::request::{status, summary};
use avsg::engine::{Config, Engine, MachineChoice};
use avsg::pool::{Chunk, HostLayout, HostPool, Part, PoolConfig, Region};
use avsg::rows::{RowFormat, Strides};
use avsg_sim::Options;
use avsg_testkit::content::check_row;
use avsg_testkit::tier;
use avsg_testkit::workload::{self, long_workload};

use crate::caller_memory::{Layout, Slots};
use crate::harness::{self, engine_over, expect_refusal, in_session, install_kernels, seeded};
use crate::small::{self, ROW, both_states};
use crate::wrong_words::corrupt_next;

/// A geometry of two layers with 576 rows, whose two segments have 64 bytes and one byte.
pub const SHAPE: [u8; 9] = [1, 0, 7, 1, 1, 2, 4, 6, 3];

/// Each kind of slots is beside a kind of layout, and each layout is registered by the library or by the caller.
#[test]
fn every_row_is_where_the_callers_layout_strides_and_table_say() {
    let workload = long_workload(SHAPE, 6);
    let shape = workload.shape;
    let (config, of_pool) = (shape.config(MachineChoice::Emu), shape.pool());
    let expected = workload::run(&workload, &mut shape.engine(MachineChoice::Emu));
    let all =
        (0..64).map(|n| (n % 32, n * 13 % 32, [None, Some(0), Some(70_000)][n / 5 % 3], n / 8 % 2));
    let axes = |&(slots, layout, base, own): &(usize, usize, Option<i32>, usize)| {
        let [of_blocks, of_regions] = [slots, layout].map(|kind| [kind % 8, kind / 8]);
        let kinds = [of_blocks, of_regions].concat().into_iter().map(|kind| kind.to_string());
        kinds.chain([format!("{base:?}"), own.to_string()]).collect()
    };
    for case in tier::cases("memory of the caller", all.collect(), 12, axes) {
        let (slots, layout, base, own) = case;
        in_session(seeded(5), |session, context| {
            let layout = Layout::new(&of_pool, layout, (own == 1).then_some(context));
            let pool = layout.pool(&of_pool).unwrap();
            let bytes: usize = layout.regions.iter().map(|region| region.memory.len()).sum();
            assert_eq!(pool.bytes(), bytes);
            assert!(pool.export().is_err() && (own == 0 || pool.chunks().len() == 0));
            let slots = Slots::new(context, (&config, &of_pool), slots, None);
            let kernels = install_kernels(session, &config);
            let engine = harness::engine(context, &slots.config(base), pool, kernels, own == 0);
            let mut engine = engine.unwrap();
            assert!(workload::run(&workload, &mut engine) == expected, "{case:?}");
            slots.check(&engine, context);
            engine.close().unwrap();
        });
    }
}

/// The rows of a bad block are copied nowhere, the slots of the state do not change, and its global
/// indices are -1. A fork is refused.
#[test]
fn a_device_leaves_out_the_rows_of_a_bad_block_and_returns_global_indices() {
    let config = small::config(2);
    for (bad, base) in [(-1, None), (9, Some(7)), (i32::MIN, Some(1 << 20)), (i32::MAX, None)] {
        in_session(seeded(5), |session, context| {
            let of_pool = PoolConfig::new(2, 600, RowFormat::single(ROW).unwrap());
            // Entry 4 is of state 1 and the slots 64..128.
            let slots = Slots::new(context, (&config, &of_pool), 3 + 16, Some(bad));
            let mut own = Engine::new(config.clone(), small::pool()).unwrap();
            let mut engine =
                engine_over(session, context, &slots.config(base), small::pool()).unwrap();
            let mut plans = [&own, &engine].map(|engine| engine.new_plan(2, 2).unwrap());
            let (mut left_out, mut row) = (0, [0; ROW]);
            for step in 0..6 {
                let owned = both_states([72 * step, 72 * step]);
                own.plan(&owned.batch(), &mut plans[0]).unwrap();
                (0..2).for_each(|layer| own.transfer(&mut plans[0], &[layer], None).unwrap());
                engine.step(&owned.batch(), &mut plans[1], 0, None).unwrap();
                engine.transfer(&mut plans[1], &[1], None).unwrap();
                for (lane, state) in (0..small::K).flat_map(|lane| [(lane, 0), (lane, 1)]) {
                    let slot = plans[0].slots(state)[lane];
                    let index = slots.index(state, slot as usize);
                    let global = |base| index.map_or(-1, |index| base + index as i32);
                    assert_eq!(plans[1].slots(state)[lane], base.map_or(slot, global), "{bad}");
                    for layer in 0..2 * usize::from(index.is_some()) {
                        engine.buffer().slot_bytes(state, layer, slot as usize, &mut row).unwrap();
                        assert!(check_row(owned.row(state)[lane], layer as u32, &row), "{bad}");
                    }
                    left_out += usize::from(index.is_none());
                }
            }
            assert!(left_out > 10, "some slots are in the block");
            slots.check(&engine, context);
            expect_refusal(engine.fork(1, 1, &[0], &[99]), &["entry 1 of state 1"]);
            drop(plans);
            engine.close().unwrap();
        });
    }
}

#[test]
fn on_the_cpu_a_step_or_fork_with_a_bad_block_is_refused_and_changes_nothing() {
    let memory = vec![7; 2 * 8 * 64 * ROW].leak();
    let bases = [0, 8 * 64 * ROW].map(|at| memory[at..].as_mut_ptr());
    // SAFETY: memory and table are never freed, and no step runs while the test accesses them.
    let caller = unsafe {
        let caller = CallerBuffer::new(&bases, &[BLOCKS]).unwrap();
        caller.with_block_table([3, 0, 5, 1, 8, 2].as_ptr(), 6, 8)
    };
    let config = Config { buffer: Some(caller), ..small::config(2) };
    let mut engine = Engine::new(config, small::pool()).unwrap();
    assert_eq!(engine.buffer().bytes(), 0);
    let of_pool = PoolConfig::new(2, 600, engine.pool().format().clone());
    assert_eq!(Engine::bytes_needed(engine.config(), &of_pool, None).unwrap().0, 0);
    let mut plan = engine.new_plan(4, 3).unwrap();
    let before = engine.read_table(0, 1).unwrap().to_vec();
    let parts = ["block is 8", "entry 1 of state 1", "has 8 blocks"];
    expect_refusal(engine.step(&both_states([0, 0]).batch(), &mut plan, 0, None), &parts);
    expect_refusal(engine.fork(0, 1, &[1], &[9]), &parts);
    assert!(engine.read_table(0, 1).unwrap() == before);
    assert!(memory.iter().all(|&byte| byte == 7));
    assert!(engine.buffer().view(1, 0, 0).unwrap().ptr(70).is_null());
    assert!(engine.buffer().slot_bytes(1, 0, 70, &mut [0; ROW]).is_err());
    assert_eq!(engine.buffer().index(1, 70), None);
    assert_eq!(engine.buffer().index(0, 17), Some(3 * 64 + 17));
}

/// Blocks of 64 slots.
const BLOCKS: Strides = Strides { block_rows: 64, block: 64 * ROW, row: ROW };

/// The other mistakes are those of `wrong_buffers_are_refused` in `bindings/c/tests/calls`.
#[test]
fn buffers_that_do_not_fit_the_engine_are_refused() {
    let wide = Strides { block_rows: 128, ..BLOCKS };
    let cases: [(&[Strides], _, &[&str]); 6] = [
        (&[BLOCKS; 2], None, &["strides is 2", "has 1 segments"]),
        (&[wide], None, &["block slots is 128", "divide S = 192"]),
        (&[Strides::rows(1 << 60)], None, &["slots of layer 0, segment 0 from", "address space"]),
        (&[BLOCKS], Some((5, 8)), &["table of blocks is 5", "need 6 words"]),
        (&[BLOCKS], Some((6, 0)), &["blocks of the buffer is 0"]),
        (&[Strides::rows(ROW)], Some((6, 8)), &["block slots is 0", "a table has blocks"]),
    ];
    for (strides, table, parts) in cases {
        let memory = vec![0; 4 * 192 * ROW].leak();
        let bases = [0, 2 * 192 * ROW].map(|at| memory[at..].as_mut_ptr());
        // SAFETY: the engine is refused.
        let mut caller = unsafe { CallerBuffer::new(&bases, strides).unwrap() };
        if let Some((len, blocks)) = table {
            // SAFETY: the engine is refused.
            caller = unsafe { caller.with_block_table([0; 6].as_ptr(), len, blocks) };
        }
        let config = Config { buffer: Some(caller), ..small::config(2) };
        expect_refusal(Engine::new(config, small::pool()), parts);
    }
    let with_base =
        |base| Engine::new(Config { slot_base: Some(base), ..small::config(2) }, small::pool());
    expect_refusal(with_base(i32::MAX - 383), &["384 slots behind it fit int32"]);
    assert!(with_base(i32::MAX - 384).is_ok());
}

/// A byte that rows and slots between each other share is refused, on the device, too, whose kernels read the rows at other
/// addresses. Nothing accesses the memory.
#[test]
fn slots_may_lie_between_rows_but_not_share_their_bytes() {
    // The rows of both layers, the slots of both layers, and 3 bytes.
    const PERIOD: usize = 4 * ROW + 3;
    let of_pool = PoolConfig::new(2, 600, RowFormat::single(ROW).unwrap());
    let pool_in = |device_address| {
        let memory = Chunk::new(vec![0; 600 * PERIOD].leak().as_mut_ptr(), 600 * PERIOD).unwrap();
        let (layers, rows, region) = (0..2, 0..600, Region { memory, device_address });
        let part = Part { segment: 0, layers, rows, region: 0, offset: 0, layer_stride: ROW };
        let (strides, parts) = ([Strides::rows(PERIOD)], [part]);
        let layout = HostLayout { regions: &[region], strides: &strides, parts: &parts };
        // SAFETY: the memory is never freed, and no step runs.
        (
            memory.ptr(),
            HostPool::new(&unsafe { of_pool.clone().with_layout(&layout) }.unwrap()).unwrap(),
        )
    };
    let slots_in = |base: *mut u8, less: usize| {
        let bases = [2, 3].map(|n| base.wrapping_add(n * ROW - less));
        // SAFETY: the memory is never freed, and no step runs.
        let caller = unsafe { CallerBuffer::new(&bases, &[Strides::rows(PERIOD)]) };
        Config { buffer: Some(caller.unwrap()), ..small::config(2) }
    };
    let text = ["slots of layer 0, segment 0", "rows of layer 1, segment 0 from"];
    let (base, pool) = pool_in(None);
    let pool = Arc::new(pool);
    expect_refusal(Engine::new(slots_in(base, 1), Arc::clone(&pool)), &text);
    Engine::new(slots_in(base, 0), pool).unwrap();
    in_session(Options::default(), |session, context| {
        let memory = DeviceMemory::zeroed(context, 600 * PERIOD).unwrap();
        let create = |less| {
            let config = slots_in(memory.address() as *mut u8, less);
            engine_over(session, context, &config, pool_in(Some(memory.address())).1)
        };
        expect_refusal(create(1), &text);
        create(0).unwrap().close().unwrap();
    });
}

/// Kernels with a lower limit of blocks say so in a status bit, and the host names the blocks and the limit.
#[test]
fn kernels_that_have_no_room_for_a_table_are_an_error() {
    in_session(seeded(5), |session, context| {
        let of_pool = PoolConfig::new(2, 600, RowFormat::single(ROW).unwrap());
        let slots = Slots::new(context, (&small::config(2), &of_pool), 3 + 16, None);
        let mut engine =
            engine_over(session, context, &slots.config(Some(5)), small::pool()).unwrap();
        let mut plan = engine.new_plan(4, 3).unwrap();
        let (word, bit) = (summary::STATUS as usize, status::TOO_MANY_SLOT_BLOCKS);
        corrupt_next(session, KernelName::Plan, Arg::Summary, word, bit);
        let parts = ["blocks of a state is 3", "those of this version 512", "pass larger blocks"];
        expect_refusal(engine.plan(&both_states([0, 0]).batch(), &mut plan), &parts);
        drop(plan);
        engine.close().unwrap();
    });
}

#[test]
fn a_device_refuses_more_blocks_per_state_than_a_core_has_room_for() {
    let config = |slots: usize| {
        let single = [Strides { block_rows: 1, block: ROW, row: ROW }];
        // SAFETY: no step runs, so nothing accesses the buffer or the table.
        let caller = unsafe {
            let caller = CallerBuffer::new(&[1, 2].map(|at| (at << 20) as *mut u8), &single);
            caller.unwrap().with_block_table((5 << 20) as *const i32, 2 * slots, 2 * slots)
        };
        let params = Params::wide(small::K as u32, 2, slots as u32);
        Config { params, buffer: Some(caller), ..small::config(2) }
    };
    // The CPU has no such limit.
    Engine::new(config(1024), small::pool()).unwrap();
    in_session(Options::default(), |session, context| {
        let create = |slots| engine_over(session, context, &config(slots), small::pool());
        create(512).unwrap().close().unwrap();
        let parts = ["blocks of a state is 1024", "at most 512", "pass larger blocks"];
        expect_refusal(create(1024), &parts);
    });
}
