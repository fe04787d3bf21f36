//! Rows and slots in memory of a C caller: every field of a layout and of a buffer reaches the engine,
//! and what does not fit is refused.

use std::ffi::c_void;
use std::ptr::{null, null_mut, without_provenance, without_provenance_mut};

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::caller_memory::*;
use avsg_capi_testkit::*;

/// Rows of a block, and bytes from one row to the next in each segment.
const BLOCK_ROWS: usize = 16;
const ROW_STRIDE: [usize; 2] = [32, 17];
/// Bytes of a layer in a block: the rows of its first segment, then those of its second one.
const LAYER: usize = BLOCK_ROWS * (32 + 17);
/// Bytes of a block with both layers and padding.
const BLOCK: usize = 2 * LAYER + 100;

/// Returns the parts of a block-major pool.
fn parts() -> [avsg_pool_part; 2] {
    [part(0, 0, LAYER), part(1, BLOCK_ROWS * 32, LAYER)]
}

/// Returns a region for a block-major pool, which begins and ends inside a page.
fn whole_region() -> avsg_region {
    let bytes = ROWS / BLOCK_ROWS * BLOCK;
    region(memory(3 + bytes).wrapping_add(3), bytes)
}

fn block_major(region: avsg_region, parts: &[avsg_pool_part]) -> avsg_pool_layout {
    let block_stride = [BLOCK, BLOCK, 0, 0];
    avsg_pool_layout {
        block_rows: BLOCK_ROWS,
        block_stride,
        ..layout(ROW_STRIDE, &[region], parts)
    }
}

#[test]
fn a_block_major_pool_is_described() {
    let region = whole_region();
    let layout = block_major(region, &parts());
    // A layout has no use for the bytes of a chunk.
    let of_pool = avsg_pool_config { layout: &layout, chunk_bytes: 1024, ..pool_config() };
    let handles = Handles::create(&of_pool, &engine_config());
    let mut chunk = avsg_chunk { data: null_mut(), bytes: 0 };
    let (mut count, mut at) = (0, null_mut());
    // SAFETY: the struct has its `size` set.
    let sizes = filled(|to| unsafe { avsg_get_memory(null(), &of_pool, 0, 0, 0, to) });
    assert_eq!(sizes.pool, 0, "the pool takes no memory");
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

#[test]
fn layouts_that_cannot_hold_the_rows_are_refused() {
    let refuse = |layout: &avsg_pool_layout, expected, message: &[&str]| {
        let (config, mut pool) = (avsg_pool_config { layout, ..pool_config() }, null_mut());
        // SAFETY: the structs have their `size` set, and the layout is refused.
        expect_error(unsafe { avsg_pool_create(&config, &mut pool) }, expected, message);
        assert!(pool.is_null());
    };
    let ([first, second], whole) = (parts(), whole_region());
    let null = avsg_region { data: null_mut(), ..whole };
    refuse(&block_major(null, &parts()), AVSG_NULL, &["regions[].data is NULL"]);
    let wrapping = region(without_provenance_mut(usize::MAX - 4095), whole.bytes);
    let text = ["bytes of region 0 from 0xfffffffffffff000", "address space"];
    refuse(&block_major(wrapping, &parts()), AVSG_INVALID, &text);
    for huge in [usize::MAX, usize::MAX / 2] {
        for (part, text) in [
            (avsg_pool_part { rows: huge, ..second }, "rows of a part"),
            (avsg_pool_part { offset: huge, ..second }, "end of a part"),
            (avsg_pool_part { first_layer: huge, ..second }, "layers of a part"),
        ] {
            refuse(&block_major(whole, &[first, part]), AVSG_INVALID, &[text]);
        }
    }
    // The host finds the rows of two layers apart, but the device does not.
    let bytes = 2 * ROWS * ROW;
    let on_device = [0, bytes as u64 / 2].map(|behind| avsg_region {
        device_address: 4096 * 4096 + behind,
        ..region(memory(bytes), bytes)
    });
    let of_layer =
        |layer| move |part| avsg_pool_part { region: layer, first_layer: layer, layers: 1, ..part };
    let [a, b] = [0, 1].map(|layer| [part(0, 0, ROW), part(1, 24, ROW)].map(of_layer(layer)));
    let both = layout([2 * ROW; 2], &on_device, &[a[0], a[1], b[0], b[1]]);
    let text = ["0x1001400 for rows of layer 1, segment 0", "layer 0, segment 0 from"];
    refuse(&both, AVSG_INVALID, &text);
}

/// Bytes of a layer and segment of a buffer.
const ROOM: usize = 64 * 2 * 40;

#[test]
fn buffers_are_described_and_refused_where_an_engine_cannot_use_them() {
    let handles = Handles::on_cpu();
    let base = memory(4 * ROOM);
    let at = |n: usize| base.wrapping_add(n * ROOM);
    let good = buffer([0, 1, 2, 3].map(at), [40, 24]);
    let create = |config: &avsg_engine_config| {
        let mut engine = null_mut();
        // SAFETY: the structs have their `size` set or are refused, and the arrays are never freed.
        (unsafe { avsg_engine_create(config, handles.pool, &mut engine) }, engine)
    };
    let refuse = |change: &dyn Fn(&mut avsg_caller_buffer), expected, parts: &[&str]| {
        let mut buffer = good;
        change(&mut buffer);
        let (status, engine) = create(&avsg_engine_config { buffer: &buffer, ..engine_config() });
        expect_error(status, expected, parts);
        assert!(engine.is_null());
    };
    static TABLE: [i32; 8] = [-1; 8];
    let in_blocks = |b: &mut avsg_caller_buffer| {
        (b.block_slots, b.block_stride) = (16, [16 * 40, 16 * 24, 0, 0]);
        (b.state_blocks, b.state_blocks_len, b.blocks) = (TABLE.as_ptr(), 8, 8);
    };
    let with_table = |table, len| {
        move |b: &mut avsg_caller_buffer| {
            in_blocks(b);
            (b.state_blocks, b.state_blocks_len) = (table, len);
        }
    };
    refuse(&|b| b.size = 8, AVSG_SIZE, &["avsg_caller_buffer.size is 8"]);
    refuse(&|b| b.bases = null(), AVSG_NULL, &["bases is NULL"]);
    refuse(&|b| b.slot_stride[1] = 0, AVSG_INVALID, &["strides is 1"]);
    refuse(&with_table(at(2).cast(), 8), AVSG_INVALID, &["slots of layer 1, segment 0 from"]);
    let wrapping = without_provenance::<i32>(isize::MAX as usize - 27);
    refuse(&with_table(wrapping, 8), AVSG_INVALID, &["address space"]);
    refuse(&with_table(TABLE.as_ptr().wrapping_byte_add(1), 8), AVSG_INVALID, &["multiple of 4"]);
    let (status, _) = create(&avsg_engine_config { global_slots: 2, ..engine_config() });
    expect_error(status, AVSG_INVALID, &["global_slots is 2"]);

    // Each state is a block of 64 slots and padding.
    let (mut padded, mut scattered) = (good, good);
    (padded.block_slots, padded.block_stride) = (64, [64 * 40 + 8, 64 * 24 + 8, 0, 0]);
    in_blocks(&mut scattered);
    let (status, engine) = create(&avsg_engine_config { buffer: &padded, ..engine_config() });
    ok(status);
    assert_eq!(
        // SAFETY: the struct has its `size` set.
        filled(|to| unsafe { avsg_engine_get_info(engine, to) }).buffer_bytes,
        0,
        "the engine allocated no buffer"
    );
    // SAFETY: the struct has its `size` set.
    let found = filled(|to| unsafe { avsg_engine_get_buffer(engine, 1, 0, to) });
    assert_eq!(found.base, at(2).cast::<c_void>());
    assert_eq!((found.slot_stride, found.state_stride, found.bytes), (40, 64 * 40 + 8, 24));
    ok(avsg_engine_destroy(engine));
    // A table whose entries are wrong is refused by each step, and its slots have no single stride.
    let scattered = avsg_engine_config { buffer: &scattered, ..engine_config() };
    let scattered = Handles::create(&pool_config(), &scattered);
    let parts = ["block is -1", "entry 0 of state 1"];
    expect_error(scattered.step(&Arrays::new(1), 0), AVSG_INVALID, &parts);
    // SAFETY: the struct has its `size` set.
    let status = unsafe { avsg_engine_get_buffer(scattered.engine, 0, 0, &mut sized()) };
    expect_error(status, AVSG_INVALID, &["in any order"]);
    scattered.destroy();
    handles.destroy();
}
