//! Device buffers in memory of the caller.

use std::ffi::c_void;

use crate::segments::AVSG_MAX_SEGMENTS;
use crate::sized;
use crate::status::Result;
use avsg::buffer::CallerBuffer;
use avsg::rows::{MAX_SEGMENTS, RowFormat, Strides};

/// A device buffer in memory of the caller: process memory for "cpu", device memory for an Ascend
/// device, and `state_blocks`, too. Slot s of state t has the index n = t * S + s. In each layer
/// and segment it is at base + (n / block_slots) * block_stride + (n % block_slots) * slot_stride. The
/// memory, which need not be zeroed but must be initialised, is valid until the engine is destroyed,
/// serves one engine, and is written by it only. Slots may lie between those of other layers or states
/// where the smaller stride stays within the larger one; AVSG_INVALID if they overlap each other,
/// rows of the pool or `state_blocks`. With `global_slots`, a plan's slots are n, or with `state_blocks` the
/// place of the slot in the buffer, plus slot_base (-1 if the device found the block outside of the
/// buffer); miss lists have slots of their state.
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
    let buffer = contract!(sized::read(buffer)?);
    CallerBuffer::check_base_count(buffer.base_count, layers, format)?;
    let bases = contract!(sized::array("bases", buffer.bases.cast(), buffer.base_count)?);
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
    sized::check_array("state_blocks", table, len)?;
    Ok(Some(contract!(caller.with_block_table(table, len, buffer.blocks))))
}
