//! Rows and slots in memory of a C caller: every field of a layout and of a buffer reaches the
//! engine.

use std::ptr::{null, null_mut};

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::caller_memory::*;
use avsg_capi_testkit::*;

/// Returns the parts of a block-major pool.
pub fn parts() -> [avsg_pool_part; 2] {
    [part(0, 0, LAYER), part(1, BLOCK_ROWS * 32, LAYER)]
}

/// Returns a region for a block-major pool, which begins and ends inside a page.
pub fn whole_region() -> avsg_region {
    let bytes = ROWS / BLOCK_ROWS * BLOCK;
    region(memory(3 + bytes).wrapping_add(3), bytes)
}

/// Returns the layout of a block-major pool.
pub fn block_major(region: avsg_region) -> avsg_pool_layout {
    let (block_rows, block_stride) = (BLOCK_ROWS, [BLOCK, BLOCK, 0, 0]);
    avsg_pool_layout { block_rows, block_stride, ..layout(ROW_STRIDE, &[region], &parts()) }
}

#[test]
fn a_block_major_pool_is_described() {
    let region = whole_region();
    let layout = block_major(region);
    // A layout has no use for the bytes of a chunk.
    let of_pool = avsg_pool_config { layout: &layout, chunk_bytes: 1024, ..pool_config() };
    let handles = Handles::create(&of_pool, &engine_config());
    let mut chunk = avsg_chunk { data: null_mut(), bytes: 0 };
    let (mut count, mut at) = (0, null_mut());
    let in_chunks = avsg_pool_config { layout: null(), ..of_pool };
    let [described, own] = [&of_pool, &in_chunks].map(|pool| {
        let config = config_on(c"ascend-sim");
        // SAFETY: the struct has its `size` set.
        filled(|to| unsafe { avsg_get_memory(&config, pool, 0, 0, 0, to) })
    });
    assert_eq!(described.pool, 0, "the pool takes no memory");
    // A device keeps the address of each chunk: two parts of two layers, or six chunks of each layer.
    assert_eq!(own.engine_device - described.engine_device, 8 * (2 * (4 + 2) - 4));
    // SAFETY: the struct has its `size` set.
    let info = filled(|to| unsafe { avsg_pool_get_info(handles.pool, to) });
    assert_eq!((info.row_bytes, info.role), (ROW, avsg_role::AVSG_ROLE_WRITER as i32));
    assert_eq!(info.pages, avsg_pages::AVSG_PAGES_CALLER as i32);
    // SAFETY: the structs have their `size` set, the arrays have the lengths beside them, and the
    // out-pointers are local variables.
    unsafe {
        ok(avsg_pool_get_chunks(handles.pool, &mut chunk, 1, &mut count));
        assert_eq!((count, info.chunks), (1, 1));
        let (begin, end) = (chunk.data.addr(), chunk.data.addr() + chunk.bytes);
        assert!(begin + 3 == region.data.addr() && end >= begin + 3 + region.bytes);
        for (layer, segment, row) in [(0, 0, 0), (1, 0, 3), (0, 1, 17), (1, 1, 127)] {
            ok(avsg_pool_get_row(handles.pool, layer, segment, row, &mut at));
            let of_segment = segment * BLOCK_ROWS * 32 + row % BLOCK_ROWS * ROW_STRIDE[segment];
            let offset = row / BLOCK_ROWS * BLOCK + layer * LAYER + of_segment;
            assert_eq!(at.addr(), region.data.addr() + offset);
        }
    }
    handles.destroy();
}

/// Bytes of a layer and segment of a buffer.
const ROOM: usize = 64 * 2 * 40;

/// Puts the slots of a buffer into blocks, whose table has wrong entries.
pub fn in_blocks(b: &mut avsg_caller_buffer) {
    static TABLE: [i32; 8] = [-1; 8];
    (b.block_slots, b.block_stride) = (16, [16 * 40, 16 * 24, 0, 0]);
    (b.state_blocks, b.state_blocks_len, b.blocks) = (TABLE.as_ptr(), 8, 8);
}

#[test]
fn buffers_are_described() {
    let base = memory(4 * ROOM);
    let good = buffer([0, 1, 2, 3].map(|n| base.wrapping_add(n * ROOM)), [40, 24]);
    // Each state is a block of 64 slots and padding.
    let (mut padded, mut scattered) = (good, good);
    (padded.block_slots, padded.block_stride) = (64, [64 * 40 + 8, 64 * 24 + 8, 0, 0]);
    in_blocks(&mut scattered);
    let padded = avsg_engine_config { buffer: &padded, ..engine_config() };
    let padded = Handles::create(&pool_config(), &padded);
    // SAFETY: the struct has its `size` set.
    let info = filled(|to| unsafe { avsg_engine_get_info(padded.engine, to) });
    assert_eq!(info.buffer_bytes, 0, "the engine allocated no buffer");
    // SAFETY: the struct has its `size` set.
    let found = filled(|to| unsafe { avsg_engine_get_buffer(padded.engine, 1, 0, to) });
    assert_eq!(found.base.addr(), base.addr() + 2 * ROOM);
    assert_eq!((found.slot_stride, found.state_stride, found.bytes), (40, 64 * 40 + 8, 24));
    padded.destroy();
    // A table whose entries are wrong is refused by each step, and its slots have no single stride.
    let scattered = avsg_engine_config { buffer: &scattered, ..engine_config() };
    let scattered = Handles::create(&pool_config(), &scattered);
    let parts = ["block is -1", "entry 0 of state 1"];
    expect_error(scattered.step(&Arrays::new(1), 0), AVSG_INVALID, &parts);
    // SAFETY: the struct has its `size` set.
    let status = unsafe { avsg_engine_get_buffer(scattered.engine, 0, 0, &mut sized()) };
    expect_error(status, AVSG_INVALID, &["in any order"]);
    scattered.destroy();
}
