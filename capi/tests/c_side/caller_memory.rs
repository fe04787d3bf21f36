//! Rows and slots in memory of a C caller, and the refusals of what is wrong with it.

use std::ffi::c_void;
use std::ptr::null_mut;

use avsg_capi::avsg_status::AVSG_INVALID;
use avsg_capi::*;
use avsg_capi_testkit::*;

/// Returns a copy of values that ends with a page behind which nothing is mapped. It is never freed.
pub fn before_a_hole<T: Copy>(values: &[T]) -> *const T {
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
    let bytes = size_of_val(values);
    let len = bytes.next_multiple_of(4096);
    // SAFETY: the system chooses the address of the new mapping, whose last page loses its access
    // before anything has its address, and whose other pages have room for the values.
    unsafe {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let at = mmap_anonymous(null_mut(), len + 4096, access, flags).unwrap();
        mprotect(at.byte_add(len), 4096, MprotectFlags::empty()).unwrap();
        let copy = at.byte_add(len - bytes).cast::<T>();
        copy.copy_from_nonoverlapping(values.as_ptr(), values.len());
        copy
    }
}

/// Bytes of a layer and segment of a buffer of two states of 64 slots.
pub const ROOM: usize = 64 * 2 * 40;

/// Returns memory for slots or rows, which is never freed.
pub fn memory(bytes: usize) -> *mut u8 {
    vec![0u8; bytes].leak().as_mut_ptr()
}

/// Returns a buffer whose slots of layers and segments begin at these addresses.
pub fn buffer(bases: [*mut u8; 4], slot_stride: [usize; 4]) -> avsg_caller_buffer {
    let bases = bases.map(|base| base.cast::<c_void>());
    avsg_caller_buffer { bases: before_a_hole(&bases), base_count: 4, slot_stride, ..sized() }
}

/// Asserts that an engine with this buffer is refused, on a pool and by the query of sizes.
pub fn refuse_buffer(pool: *mut avsg_pool, buffer: &avsg_caller_buffer, parts: &[&str]) {
    let (config, mut engine) = (avsg_engine_config { buffer, ..engine_config() }, null_mut());
    // SAFETY: the structs have their `size` set, and the buffer is refused.
    expect_error(unsafe { avsg_engine_create(&config, pool, &mut engine) }, AVSG_INVALID, parts);
    assert!(engine.is_null());
}

/// Returns a part with all rows of both layers of a segment.
pub fn part(segment: usize, offset: usize, layer_stride: usize) -> avsg_pool_part {
    avsg_pool_part {
        region: 0,
        offset,
        segment,
        first_layer: 0,
        layers: 2,
        layer_stride,
        first_row: 0,
        rows: ROWS,
    }
}

/// Returns a layout with both layers and segments of a row side by side.
pub fn layout(regions: &[avsg_region], parts: &[avsg_pool_part]) -> avsg_pool_layout {
    avsg_pool_layout {
        row_stride: [2 * ROW, 2 * ROW, 0, 0],
        regions: before_a_hole(regions),
        region_count: regions.len(),
        parts: before_a_hole(parts),
        part_count: parts.len(),
        ..sized()
    }
}

/// Asserts that a pool of this layout is refused.
pub fn refuse_layout(layout: &avsg_pool_layout, parts: &[&str]) {
    let mut pool = null_mut();
    // SAFETY: the structs have their `size` set, and the layout is refused.
    let status =
        unsafe { avsg_pool_create(&avsg_pool_config { layout, ..pool_config() }, &mut pool) };
    expect_error(status, AVSG_INVALID, parts);
    assert!(pool.is_null());
}
