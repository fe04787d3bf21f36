//! Pools over memory that the caller laid out.

use std::ffi::c_void;

use crate::boundary;
use crate::segments::AVSG_MAX_SEGMENTS;
use crate::status::avsg_status::AVSG_NULL;
use crate::status::{Failure, Result};
use avsg::buffer::CallerBuffer;
use avsg::pool::{Chunk, HostLayout, Part, PoolConfig, Region};
use avsg::rows::{MAX_SEGMENTS, RowFormat, Strides};

/// A contiguous range of the caller's memory, of any length and alignment.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_region {
    /// The first byte.
    pub data: *mut c_void,
    /// The length in bytes.
    pub bytes: usize,
    /// The address of the first byte for kernels of the Ascend device, if the caller has registered
    /// the memory. 0 lets the library register the pages that the region touches.
    pub device_address: u64,
}

/// Where some rows of one segment are. Row r of layer l is at
/// offset + (l - first_layer) * layer_stride + ((r - first_row) / block_rows) * block_stride +
/// ((r - first_row) % block_rows) * row_stride bytes from the start of the region.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_pool_part {
    /// The index of the region.
    pub region: usize,
    /// Bytes from the start of the region to the first row of the first layer.
    pub offset: usize,
    /// The index of the segment.
    pub segment: usize,
    /// The first layer.
    pub first_layer: usize,
    /// The number of layers.
    pub layers: usize,
    /// Bytes from one layer to the next; any for one layer.
    pub layer_stride: usize,
    /// The first row.
    pub first_row: usize,
    /// The number of rows. If a segment's rows are in several parts, all parts but the last hold the
    /// same power of two of rows.
    pub rows: usize,
}

/// A pool in memory of the caller as it is (`avsg_pool_config.layout`): token-major, layer-major or
/// block-major, with padding after rows or blocks, in one region or several. Every row of every layer
/// and segment is in one part. Rows may lie between those of other layers, segments or blocks where
/// the smaller stride stays within the larger one; AVSG_INVALID if two rows overlap. The regions must
/// be valid for reads and writes until the pool's handle and every engine on the pool are destroyed;
/// the structs and arrays are not used after the call. `chunk_bytes` and the allocator are ignored, and the
/// pool cannot be exported.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_pool_layout {
    /// sizeof(avsg_pool_layout).
    pub size: usize,
    /// Rows of a block, a power of two; 0 for rows without blocks.
    pub block_rows: usize,
    /// Bytes from one block of a segment to the next; ignored if `block_rows` is 0.
    pub block_stride: [usize; AVSG_MAX_SEGMENTS],
    /// Bytes from one row of a block to the next.
    pub row_stride: [usize; AVSG_MAX_SEGMENTS],
    /// The memory.
    pub regions: *const avsg_region,
    /// Elements of `regions`: at most `part_count`.
    pub region_count: usize,
    /// The parts, in any order.
    pub parts: *const avsg_pool_part,
    /// Elements of `parts`: at most layers * rows * segments.
    pub part_count: usize,
}

fn region(region: &avsg_region) -> Result<Region> {
    let Some(memory) = Chunk::new(region.data.cast(), region.bytes) else {
        let text = "regions[].data is NULL, but a region is memory; pass its address";
        return Err(Failure::new(AVSG_NULL, text.into()));
    };
    let device_address = (region.device_address != 0).then_some(region.device_address);
    Ok(Region { memory, device_address })
}

fn part(part: &avsg_pool_part) -> Part {
    Part {
        segment: part.segment,
        // An end that overflows is beyond every pool, and the library refuses it.
        layers: part.first_layer..part.first_layer.saturating_add(part.layers),
        rows: part.first_row..part.first_row.saturating_add(part.rows),
        region: part.region,
        offset: part.offset,
        layer_stride: part.layer_stride,
    }
}

/// Lays the rows of a pool out in memory of the caller; NULL leaves them in memory of the library.
///
/// # Safety
/// `layout` is NULL or valid for reads of the number of bytes in its `size`, and its arrays for reads of their
/// lengths. The regions are valid for reads and writes, and their device addresses those of registered memory,
/// until every pool of the configuration is dropped.
pub(crate) unsafe fn in_layout(
    pool: PoolConfig,
    layout: *const avsg_pool_layout,
) -> Result<PoolConfig> {
    if layout.is_null() {
        return Ok(pool);
    }
    let layout = contract!(boundary::read(layout))?;
    HostLayout::check_counts(&pool, layout.region_count, layout.part_count)?;
    let regions = contract!(boundary::array("regions", layout.regions, layout.region_count))?;
    let parts = contract!(boundary::array("parts", layout.parts, layout.part_count))?;
    let segments = pool.format.as_slice().len();
    let strides = layout.block_stride.iter().zip(layout.row_stride).take(segments);
    let block_rows = layout.block_rows;
    let strides: heapless::Vec<Strides, MAX_SEGMENTS> =
        strides.map(|(&block, row)| Strides { block_rows, block, row }).collect();
    let regions = boundary::converted("regions", regions, region)?;
    let parts = boundary::converted("parts", parts, |given| Ok(part(given)))?;
    let layout = HostLayout { regions: &regions, strides: &strides, parts: &parts };
    // The caller does not write a row while an engine copies it (`avsg_pool`).
    Ok(contract!(pool.with_layout(&layout))?)
}

/// A device buffer in memory of the caller: process memory for "cpu", device memory for an Ascend
/// device, and `state_blocks`, too. Slot s of state t has the index n = t * S + s. In each layer
/// and segment it is at base + (n / block_slots) * block_stride + (n % block_slots) * slot_stride. The
/// memory, which need not be zeroed but must be initialised, is valid until the engine is destroyed,
/// serves one engine, and is written by it only. Slots may lie between those of other layers or states
/// where the smaller stride stays within the larger one; AVSG_INVALID if they overlap each other,
/// rows of the pool or `state_blocks`. With `global_slots`, `slot` of a plan has n, or with `state_blocks` the
/// place of the slot in the buffer, plus slot_base (-1 if the device found the block outside of the
/// buffer). `miss_slot` always has s, from 0 to S - 1, because Stage Two reads it: with f = cu_q[r] * k the slot of
/// miss j of request r is slot[f + miss_position[f + j]] as `slot` numbers it, and miss_slot[f + j] in its state.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_caller_buffer {
    /// sizeof(avsg_caller_buffer).
    pub size: usize,
    /// bases[layer * segments + segment] is the address of index 0.
    pub bases: *const *mut c_void,
    /// Elements of `bases`: layers * segments.
    pub base_count: usize,
    /// Slots of a block, a power of two that divides S; 0 for slots without blocks. S gives the states a
    /// stride of their own.
    pub block_slots: usize,
    /// Bytes from one block of a segment to the next; ignored if `block_slots` is 0.
    pub block_stride: [usize; AVSG_MAX_SEGMENTS],
    /// Bytes from one slot of a block to the next.
    pub slot_stride: [usize; AVSG_MAX_SEGMENTS],
    /// NULL, or the blocks of each state in any order, S / block_slots per state: slot s of state t
    /// is slot s % block_slots of block state_blocks[t * (S / block_slots) + s / block_slots]. The
    /// work of every call that plans or transfers reads this array, which must stay valid and is not
    /// written meanwhile. An entry may change together with the generation of its state. On "cpu" a
    /// call that names a state with an entry outside of 0..blocks is AVSG_INVALID. Kernels read the
    /// array when they run, in a replay too: they leave out the rows of such a block, whose slots then
    /// hold other rows until the state has a new generation. An Ascend device takes at most 512
    /// entries per state.
    pub state_blocks: *const i32,
    /// Elements of `state_blocks`.
    pub state_blocks_len: usize,
    /// With `state_blocks`, the number of blocks of the memory.
    pub blocks: usize,
}

/// Reads the description of a buffer for a pool of `layers` layers of rows of this format, which the
/// engine checks; None for NULL.
///
/// # Safety
/// `buffer` is NULL or valid for reads of the number of bytes in its `size`, and `bases` has
/// `base_count` elements. The buffer's memory is as `avsg_caller_buffer` demands.
pub(crate) unsafe fn caller_buffer(
    buffer: *const avsg_caller_buffer,
    layers: usize,
    format: &RowFormat,
) -> Result<Option<CallerBuffer>> {
    if buffer.is_null() {
        return Ok(None);
    }
    let buffer = contract!(boundary::read(buffer)?);
    CallerBuffer::check_base_count(buffer.base_count, layers, format)?;
    let bases = contract!(boundary::array("bases", buffer.bases.cast(), buffer.base_count)?);
    let strides = buffer.block_stride.iter().zip(buffer.slot_stride);
    let block_rows = buffer.block_slots;
    // A segment that a row lacks has no stride.
    let strides: heapless::Vec<Strides, MAX_SEGMENTS> = strides
        .take_while(|&(_, row)| row != 0)
        .map(|(&block, row)| Strides { block_rows, block, row })
        .collect();
    let caller = contract!(CallerBuffer::new(bases, &strides)?);
    if buffer.state_blocks.is_null() {
        return Ok(Some(caller));
    }
    let (table, len) = (buffer.state_blocks, buffer.state_blocks_len);
    // The array may be in device memory, so no reference to it exists.
    boundary::check_array("state_blocks", table, len)?;
    Ok(Some(contract!(caller.with_block_table(table, len, buffer.blocks))))
}
