//! The device buffer of an engine on an Ascend device: memory of the engine or of the caller.

use std::sync::Arc;

use super::acl::{Context, DeviceMemory, MemorySource, sys};
use crate::Result;
use crate::backend::SlotCopy;
use crate::buffer::{BufferConfig, DeviceBuffer, ReadSlots};
use crate::resources::Config;

/// Returns the caller's buffer, or allocates one.
pub(super) fn allocate(
    config: &Config,
    shape: &BufferConfig,
    context: &Arc<Context>,
) -> Result<DeviceBuffer> {
    // The reader of memory of the engine owns it.
    let reader = |own: Option<DeviceMemory>| -> ReadSlots {
        let context = Arc::clone(context);
        Box::new(move |from, into| {
            let (_own, from) = (&own, core::ptr::without_provenance(from as usize));
            // SAFETY: the address is that of a slot or of entries of the engine's memory or of the caller's
            // buffer, which are valid until the engine is dropped (`CallerBuffer::new`, `with_block_table`). No
            // work writes entries. Calls with host arrays have waited for their work, and whoever put work into a
            // stream lets nothing read the slots while it runs (`Engine::enqueue_plan`).
            unsafe { context.bind()?.read(from, into) }
        })
    };
    if let Some(caller) = &config.buffer {
        return DeviceBuffer::from_caller(shape, caller, Some(reader(None)));
    }
    let source = MemorySource { context, allocator: config.allocator.as_ref() };
    let memory = DeviceMemory::zeroed(source, shape.bytes()?)?;
    DeviceBuffer::on_device(shape, memory.address(), reader(Some(memory)))
}

/// Copies slots from one state to others, and waits. No other work uses them.
pub(super) fn copy(context: &Context, buffer: &DeviceBuffer, copy: &SlotCopy<'_>) -> Result<()> {
    let (current, SlotCopy { layers, from, to, slots }) = (context.bind()?, *copy);
    for (&layer, &to) in layers.iter().flat_map(|layer| to.iter().map(move |to| (layer, to))) {
        buffer.for_each_copy(layer, [from, to as usize], slots, |from, to, bytes| {
            let kind = sys::ACL_MEMCPY_DEVICE_TO_DEVICE;
            // SAFETY: both ranges are slots of the buffer, of different states, which do not overlap. No
            // work uses them: `Device::wait_for_tables` has waited for every stream.
            unsafe { current.copy(to.cast(), from.cast(), bytes, kind) }
        })?;
    }
    Ok(())
}
