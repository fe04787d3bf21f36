//! Pools over memory that a C caller laid out: a block-major pool with padded rows gives exact
//! steps on every device, and a layout that misses a row is refused.

use std::ptr::null_mut;

use avsg_capi::avsg_status::{AVSG_INVALID, AVSG_NULL};
use avsg_capi::*;
use avsg_capi_testkit::allocator::Counting;
use avsg_capi_testkit::*;

/// Rows of a block, and bytes from one row to the next in each segment.
const BLOCK_ROWS: usize = 16;
const ROW_STRIDE: [usize; 2] = [32, 17];
/// Bytes of a block: the rows of both segments in both layers, and padding.
const BLOCK: usize = 2 * BLOCK_ROWS * (32 + 17) + 100;

/// Returns the parts: the block of a layer holds its first segment, then its second one.
fn parts() -> [avsg_pool_part; 2] {
    let part = |segment, offset| avsg_pool_part {
        region: 0,
        offset,
        segment,
        first_layer: 0,
        layers: 2,
        layer_stride: BLOCK_ROWS * (32 + 17),
        first_row: 0,
        rows: ROWS,
    };
    [part(0, 0), part(1, BLOCK_ROWS * 32)]
}

fn layout(regions: &[avsg_region], parts: &[avsg_pool_part]) -> avsg_pool_layout {
    avsg_pool_layout {
        block_rows: BLOCK_ROWS,
        block_stride: [BLOCK, BLOCK, 0, 0],
        row_stride: [ROW_STRIDE[0], ROW_STRIDE[1], 0, 0],
        regions: regions.as_ptr(),
        region_count: regions.len(),
        parts: parts.as_ptr(),
        part_count: parts.len(),
        ..sized()
    }
}

/// Returns a region of memory that is never freed. It begins and ends inside a page, and nothing
/// else is in its pages, which a device registers.
fn region() -> avsg_region {
    let bytes = ROWS / BLOCK_ROWS * BLOCK;
    let memory = vec![0u8; (3 + bytes).next_multiple_of(4096) + 4096].leak();
    let at = memory.as_ptr().align_offset(4096) + 3;
    avsg_region { data: memory[at..].as_mut_ptr().cast(), bytes, device_address: 0 }
}

#[test]
fn a_block_major_pool_with_padded_rows_is_exact_on_every_device() {
    each_device(|device| {
        let (region, parts) = (region(), parts());
        let context = (device != c"cpu").then(|| avsg::ascend::simulated::context().unwrap());
        let mut handles =
            Handles { context, ..Handles::from_raw(null_mut(), null_mut(), null_mut()) };
        let counting = Counting::on(device);
        let allocator = counting.c();
        let engine = avsg_engine_config { allocator: &allocator, ..config_on(device) };
        let mut memory: avsg_memory = sized();
        // SAFETY: the structs have their `size` set, the region is never freed, and the out-pointers
        // are fields of `handles` and a local variable.
        unsafe {
            let layout = layout(&[region], &parts);
            let config = avsg_pool_config { layout: &layout, ..pool_config() };
            ok(avsg_pool_create(&config, &mut handles.pool));
            for layer in 0..2 {
                (0..ROWS).for_each(|i| handles.write_row(layer, i, &row(layer, i)));
            }
            ok(avsg_engine_create(&engine, handles.pool, &mut handles.engine));
            ok(avsg_get_memory(&engine, &config, 0, 0, 0, &mut memory));
            assert_eq!(memory.pool, 0, "the pool takes no memory");
            assert_eq!(counting.live(), [memory.engine_host, 0, memory.engine_device]);
            ok(avsg_plan_create(handles.engine, 4, 2, &mut handles.plan));
        }
        for step in 1..8 {
            let mut owned = Arrays::new(step);
            owned.decode_at(100 + 2 * step);
            ok(handles.step(&owned, 0));
            assert_eq!(handles.expect_exact(&owned, 0), 32);
            let fresh = owned.fresh();
            // SAFETY: `owned` owns the arrays of the batch and the fresh rows.
            ok(unsafe {
                avsg_engine_append(handles.engine, &owned.batch(), 0, &fresh, null_mut())
            });
            // The second token of the second request is in row 1 of its block.
            let id = 101 + 2 * step as usize;
            let host = owned.blocks[owned.block_stride + id / 16] as usize * 16 + id % 16;
            let at = host / BLOCK_ROWS * BLOCK + host % BLOCK_ROWS * ROW_STRIDE[0];
            // SAFETY: the offset is that of a row in the region, and no call is in progress.
            let found = unsafe {
                std::slice::from_raw_parts(region.data.cast::<u8>().wrapping_add(at), 24)
            };
            let mut written = [0; ROW];
            avsg_testkit::content::fill_row(id as i32, 0, &mut written);
            assert!(found == &written[..24], "appended row {id} in host row {host}");
        }
        handles.destroy();
        assert_eq!(counting.live(), [0; 3]);
    });
}

#[test]
fn layouts_that_cannot_hold_the_rows_are_refused() {
    let refuse = |region: avsg_region, parts: &[avsg_pool_part], expected, message: &[&str]| {
        let mut pool = null_mut();
        let layout = layout(std::slice::from_ref(&region), parts);
        let config = avsg_pool_config { layout: &layout, ..pool_config() };
        // SAFETY: the structs have their `size` set, and the layout is refused.
        let status = unsafe { avsg_pool_create(&config, &mut pool) };
        expect_error(status, expected, message);
        assert!(pool.is_null());
    };
    let [first, second] = parts();
    refuse(region(), &[first], AVSG_INVALID, &["rows of a part is 0"]);
    refuse(region(), &[first, second, second], AVSG_INVALID, &["two parts hold it"]);
    let null = avsg_region { data: null_mut(), ..region() };
    refuse(null, &[first, second], AVSG_NULL, &["regions[].data is NULL"]);
    let short = avsg_region { bytes: 1000, ..region() };
    refuse(short, &[first, second], AVSG_INVALID, &["end of a part", "region 0 has 1000 bytes"]);
    for huge in [usize::MAX, usize::MAX / 2] {
        let part = avsg_pool_part { rows: huge, ..second };
        refuse(region(), &[first, part], AVSG_INVALID, &["rows of a part", "the pool has 128"]);
        let part = avsg_pool_part { offset: huge, ..second };
        refuse(region(), &[first, part], AVSG_INVALID, &["end of a part"]);
        let part = avsg_pool_part { first_layer: huge, ..second };
        refuse(region(), &[first, part], AVSG_INVALID, &["layers of a part"]);
    }
}
