//! Where the slots are, for attention.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::contract::contract;
use crate::engine::avsg_engine;
use crate::handle;
use crate::sized::give_struct;
use crate::status::{Failure, Result, avsg_status};
use avsg::Error;
use avsg::buffer::DeviceBuffer;
use avsg::engine::Engine;
use avsg::rows::{self, MAX_SEGMENTS, Segment};

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

/// The device buffers of all layers and segments.
pub(crate) struct Buffers {
    /// The address of slot 0 of state 0 in each segment of the first layer, then of the second, and so on.
    bases: Vec<AtomicPtr<c_void>>,
    layers: usize,
    /// The strides of the states and of the slots of each segment, and its bytes in a row.
    segments: heapless::Vec<Result<[usize; 3]>, MAX_SEGMENTS>,
}

impl Buffers {
    pub fn new(buffer: &DeviceBuffer) -> Result<Self> {
        let (layers, segments) = (buffer.config().layers, buffer.config().format.as_slice());
        let (mut bases, count) = (Vec::new(), layers * segments.len());
        let bytes = count * size_of::<AtomicPtr<c_void>>();
        let refused = |_| Error::OutOfMemory { what: "addresses of the device buffer", bytes };
        bases.try_reserve_exact(count).map_err(refused)?;
        for index in 0..count {
            let base = buffer.segment_base(index / segments.len(), index % segments.len())?;
            bases.push(AtomicPtr::new(base.cast()));
        }
        let of_segment = |(index, segment): (usize, &Segment)| {
            let (state, slot) = buffer.strides(index)?;
            Ok([state, slot, segment.bytes])
        };
        Ok(Self { bases, layers, segments: segments.iter().enumerate().map(of_segment).collect() })
    }

    fn describe(&self, layer: usize, segment: usize) -> Result<avsg_buffer> {
        rows::index("layer", layer, self.layers)?;
        rows::index("segment", segment, self.segments.len())?;
        let base = self.bases[layer * self.segments.len() + segment].load(Ordering::Relaxed);
        let strides = self.segments[segment].as_ref().map_err(Failure::again)?;
        let &[state_stride, slot_stride, bytes] = strides;
        Ok(avsg_buffer { size: 0, base, slot_stride, state_stride, bytes })
    }
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
    let describe =
        || handle::fixed::<Engine, _>(engine, |(_, buffers)| buffers.describe(layer, segment));
    contract!(give_struct(buffer, describe))
}
