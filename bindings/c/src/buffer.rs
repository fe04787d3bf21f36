//! Where the slots are, for attention.

use std::ffi::c_void;

use crate::engine::avsg_engine;
use crate::handle;
use crate::sized::give_struct;
use crate::status::avsg_status;
use avsg::buffer::DeviceBuffer;
use avsg::engine::Engine;

/// The device buffer of one layer and segment. Slot s of state t is at
/// base + t * state_stride + s * slot_stride.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_buffer {
    /// sizeof(avsg_buffer).
    pub size: usize,
    /// Slot 0 of state 0 in the device's memory, and page 0 of page tables.
    pub base: *mut c_void,
    /// Bytes from one slot to the next: the segment's stride.
    pub slot_stride: usize,
    /// Bytes from one state to the next: S * slot_stride.
    pub state_stride: usize,
    /// Bytes of the segment in a row.
    pub bytes: usize,
}

/// Describes the device buffer of a layer and segment, which attention reads. Its memory is valid
/// until the engine is destroyed, and only the engine may write it. AVSG_INVALID for a buffer of the
/// caller whose slots are no single stride apart.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_get_buffer(
    engine: *const avsg_engine,
    layer: usize,
    segment: usize,
    buffer: *mut avsg_buffer,
) -> avsg_status {
    let describe = |buffer: &DeviceBuffer| {
        let (base, config) = (buffer.segment_base(layer, segment)?.cast(), buffer.config());
        let (state_stride, slot_stride) = buffer.strides(segment)?;
        let bytes = config.format.as_slice()[segment].bytes;
        Ok(avsg_buffer { size: 0, base, slot_stride, state_stride, bytes })
    };
    let find = || handle::fixed::<Engine, _>(engine, |(_, buffer, _)| describe(buffer));
    contract!(give_struct(buffer, find))
}
