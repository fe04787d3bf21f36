//! No two rows of a pool and slots of a buffer in memory of a C caller share a byte, whatever their
//! strides, and none is beyond the address space. Those that only lie between each other are exact.

#[path = "c_side/caller_memory.rs"]
mod caller_memory;

use std::ffi::c_void;
use std::ptr::{null_mut, without_provenance, without_provenance_mut};

use avsg_capi::*;
use avsg_capi_testkit::*;
use caller_memory::*;

#[test]
fn rows_that_overlap_or_wrap_the_address_space_are_refused() {
    let base = memory(2 * ROWS * ROW + 64);
    let region = avsg_region { data: base.cast(), bytes: 2 * ROWS * ROW, device_address: 0 };
    let refuse = |region: avsg_region, parts: &[avsg_pool_part], text: &[&str]| {
        refuse_layout(&layout(&[region], parts), text);
    };
    let (first, second) = (part(0, 0, ROW), part(1, 24, ROW));
    // A layer inside the row of another, one layer for both, and a segment over another one.
    let text = ["address is", "rows of layer 1, segment 0", "rows of layer 0, segment 1"];
    refuse(region, &[part(0, 0, 24), second], &text);
    refuse(region, &[part(0, 0, 0), second], &["layer stride is 0", "holds 24 bytes"]);
    let text = ["rows of layer 0, segment 1", "rows of layer 0, segment 0 from"];
    refuse(region, &[first, part(1, 23, ROW)], &text);
    // Layers that are two parts, in two regions that begin at one address.
    let halves = [0, 1].map(|layer| avsg_pool_part {
        region: layer,
        first_layer: layer,
        layers: 1,
        ..first
    });
    let both = layout(&[region; 2], &[halves[0], halves[1], second]);
    refuse_layout(&both, &["rows of layer 1, segment 0", "rows of layer 0, segment 0"]);
    // The host finds them apart, but the device does not.
    let on_device = [0, 2 * ROWS * ROW].map(|behind| avsg_region {
        data: memory(2 * ROWS * ROW).cast(),
        device_address: 4096 * 4096 + behind as u64 / 4,
        ..region
    });
    let both = layout(&on_device, &[halves[0], halves[1], second]);
    refuse_layout(&both, &["0x1000a00 for rows of layer 1, segment 0", "layer 0, segment 0 from"]);
    // The region ends behind the address space, in host memory or on the device.
    let wrapping = without_provenance_mut::<c_void>(usize::MAX - 4095);
    let text = ["bytes of region 0 from 0xfffffffffffff000", "address space"];
    refuse(avsg_region { data: wrapping, ..region }, &[first, second], &text);
    refuse(avsg_region { device_address: u64::MAX - 4095, ..region }, &[first, second], &text);
    refuse(avsg_region { bytes: usize::MAX, ..region }, &[first, second], &["bytes of region 0"]);
}

#[test]
fn slots_that_overlap_or_wrap_the_address_space_are_refused() {
    let base = memory(4 * ROOM);
    let at = |n: usize| base.wrapping_add(n * ROOM);
    let region = avsg_region {
        data: memory(2 * ROWS * ROW).cast(),
        bytes: 2 * ROWS * ROW,
        device_address: 0,
    };
    let mut pool = null_mut();
    let of_pool = layout(&[region], &[part(0, 0, ROW), part(1, 24, ROW)]);
    // SAFETY: the structs have their `size` set, and the region is never freed.
    ok(unsafe {
        avsg_pool_create(&avsg_pool_config { layout: &of_pool, ..pool_config() }, &mut pool)
    });
    let refuse = |bases, text: &[&str]| refuse_buffer(pool, &buffer(bases, [24, 16, 0, 0]), text);
    let text = ["slots of layer 1, segment 0", "slots of layer 0, segment 0 from"];
    refuse([at(0), at(1), at(0), at(3)], &text);
    let text = ["slots of layer 0, segment 1", "slots of layer 0, segment 0 from"];
    refuse([at(0), at(0).wrapping_add(127 * 24 + 23), at(2), at(3)], &text);
    // The last row of the pool ends 1 byte behind the first slot.
    let in_pool = region.data.cast::<u8>().wrapping_add(2 * ROWS * ROW - 1);
    let text = ["slots of layer 1, segment 1", "rows of layer 1, segment 1 from"];
    refuse([at(0), at(1), at(2), in_pool], &text);
    let wrapping = without_provenance_mut::<u8>(usize::MAX - 8191);
    refuse([at(0), at(1), wrapping, at(3)], &["slots of layer 1, segment 0", "address space"]);
    let huge = buffer([0, 1, 2, 3].map(at), [24, usize::MAX / 64, 0, 0]);
    refuse_buffer(pool, &huge, &["slots of layer 0, segment 1", "address space"]);
    // The first table of blocks is among the slots, and the second wraps around the address space.
    let mut blocks = buffer([0, 1, 2, 3].map(at), [24, 16, 0, 0]);
    (blocks.block_slots, blocks.block_stride) = (16, [16 * 24, 16 * 16, 0, 0]);
    (blocks.block_table_len, blocks.blocks) = (8, 8);
    for (table, text) in [
        (at(2).wrapping_add(100).cast_const().cast(), "slots of layer 1, segment 0 from"),
        (without_provenance::<i32>(isize::MAX as usize - 27), "address space"),
    ] {
        refuse_buffer(pool, &avsg_caller_buffer { block_table: table, ..blocks }, &[text]);
    }
    // Slots in the padding between the rows of the pool, and between each other, share no bytes.
    let side_by_side = memory(128 * 80);
    let bases = [0, 24, 40, 64].map(|at| side_by_side.wrapping_add(at));
    let mut handles = Handles::from_raw(pool, null_mut(), null_mut());
    let own = buffer(bases, [80, 80, 0, 0]);
    let config = avsg_engine_config { buffer: &own, ..engine_config() };
    for layer in 0..2 {
        (0..ROWS).for_each(|i| handles.write_row(layer, i, &row(layer, i)));
    }
    // SAFETY: the structs have their `size` set, and the memory is never freed.
    unsafe {
        ok(avsg_engine_create(&config, pool, &mut handles.engine));
        ok(avsg_plan_create(handles.engine, 4, 2, &mut handles.plan));
    }
    for step in 0..8 {
        let owned = Arrays::new(step);
        ok(handles.step(&owned, 0));
        assert_eq!(handles.expect_exact(&owned, 0), 32);
    }
    handles.destroy();
}
