//! Bytes at an address, whosever memory it is.

use core::ffi::c_void;

use avsg::ascend::acl::api::memory::{CopyKind, copy};
use avsg::ascend::acl::owned::Context;
use avsg::engine::Engine;

/// Bytes of a device's memory, or of this process without a context.
///
/// # Safety
/// So many bytes are readable at this address, and nothing that is under way writes them.
pub unsafe fn bytes(context: Option<&Context>, from: *const c_void, n: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; n];
    match context {
        // SAFETY: the contract.
        None => unsafe { bytes.as_mut_ptr().copy_from(from.cast(), n) },
        Some(context) => {
            let _current = context.bind().expect("the device's context");
            let to = bytes.as_mut_ptr().cast();
            // SAFETY: the contract; `to` has as many.
            unsafe { copy(context.acl(), to, from, n, CopyKind::DeviceToHost) }
                .expect("the device's bytes");
        }
    }
    bytes
}

/// The same as words of 32 bits.
///
/// # Safety
/// As for [`bytes`], four of them for each word.
pub unsafe fn words(context: Option<&Context>, from: *const i32, n: usize) -> Vec<i32> {
    // SAFETY: the contract.
    let bytes = unsafe { bytes(context, from.cast(), 4 * n) };
    bytes.as_chunks::<4>().0.iter().map(|word| i32::from_ne_bytes(*word)).collect()
}

/// All slots of a layer, state by state within each segment, the gaps of the strides included. The context is
/// the engine's, if its slots are a device's.
pub fn slots(engine: &Engine, context: Option<&Context>, layer: usize) -> Vec<u8> {
    let config = engine.buffer().config();
    let mut all = Vec::new();
    for (i, segment) in config.format.as_slice().iter().enumerate() {
        let base = engine.buffer().segment_base(layer, i).expect("a segment of the engine");
        let len = config.states * config.slots * segment.stride;
        // SAFETY: a segment's base is followed by the slots of all states, `stride` apart, zeroed at first;
        // nothing is launched while the engine is borrowed here.
        all.extend(unsafe { bytes(context, base.cast_const().cast(), len) });
    }
    all
}
