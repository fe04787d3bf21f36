//! Rows and slots in memory of a C caller, for pools of [`pool_config`](crate::pool_config) and engines
//! of two states.

use std::ffi::c_void;

use avsg_capi::*;

use crate::{ROWS, sized};

/// Rows of a block of a block-major pool.
pub const BLOCK_ROWS: usize = 16;
/// Bytes from one row to the next in each segment.
pub const ROW_STRIDE: [usize; 2] = [32, 17];
/// Bytes of a layer in a block: the rows of its first segment, then those of its second one.
pub const LAYER: usize = BLOCK_ROWS * (32 + 17);
/// Bytes of a block with both layers and padding.
pub const BLOCK: usize = 2 * LAYER + 100;

/// Returns zeroed memory, which is never freed. It begins at a page, and nothing else is in its pages,
/// which a device registers.
pub fn memory(bytes: usize) -> *mut u8 {
    let memory = vec![0u8; bytes.next_multiple_of(4096) + 4096].leak();
    let at = memory.as_ptr().align_offset(4096);
    memory[at..].as_mut_ptr()
}

/// Returns a region of memory.
pub fn region(data: *mut u8, bytes: usize) -> avsg_region {
    avsg_region { data: data.cast(), bytes, device_address: 0 }
}

/// Returns a part of region 0 with all rows of both layers of a segment.
pub fn part(segment: usize, offset: usize, layer_stride: usize) -> avsg_pool_part {
    let (region, first_layer, layers, first_row, rows) = (0, 0, 2, 0, ROWS);
    avsg_pool_part { region, offset, segment, first_layer, layers, layer_stride, first_row, rows }
}

/// Returns a layout without blocks, whose arrays are copies that are never freed.
pub fn layout(
    row_stride: [usize; 2],
    regions: &[avsg_region],
    parts: &[avsg_pool_part],
) -> avsg_pool_layout {
    avsg_pool_layout {
        row_stride: [row_stride[0], row_stride[1], 0, 0],
        regions: regions.to_vec().leak().as_ptr(),
        region_count: regions.len(),
        parts: parts.to_vec().leak().as_ptr(),
        part_count: parts.len(),
        ..sized()
    }
}

/// Returns a buffer without blocks, whose slots of layers and segments begin at these addresses. The
/// array of addresses is a copy that is never freed.
pub fn buffer(bases: [*mut u8; 4], slot_stride: [usize; 2]) -> avsg_caller_buffer {
    let bases = bases.map(|base| base.cast::<c_void>());
    avsg_caller_buffer {
        bases: bases.to_vec().leak().as_ptr(),
        base_count: bases.len(),
        slot_stride: [slot_stride[0], slot_stride[1], 0, 0],
        ..sized()
    }
}
