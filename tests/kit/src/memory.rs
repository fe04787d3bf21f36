//! Reads memory of this process or of a device.

use core::ffi::c_void;

use avsg::ascend::acl::Context;
use avsg::engine::Engine;
use avsg::pool::HostPool;

/// Reads `n` bytes of a device's memory or, without a context, of this process.
///
/// # Safety
/// `from` points to `n` readable bytes, and no work in progress writes them.
pub unsafe fn read_bytes(context: Option<&Context>, from: *const c_void, n: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; n];
    match context {
        // SAFETY: `from` points to `n` bytes, which nothing writes (`# Safety`).
        None => unsafe { bytes.as_mut_ptr().copy_from(from.cast(), n) },
        Some(context) => {
            let current = context.bind().expect("the device's context becomes current");
            // SAFETY: `from` points to `n` bytes, which nothing writes (`# Safety`).
            unsafe { current.read(from, &mut bytes) }.expect("the runtime copies from the device");
        }
    }
    bytes
}

/// Reads `n` words of 32 bits of a device's memory or, without a context, of this process.
///
/// # Safety
/// `from` points to `n` readable words, and no work in progress writes them.
pub unsafe fn read_words(context: Option<&Context>, from: *const i32, n: usize) -> Vec<i32> {
    // SAFETY: `from` points to `n` words, which are 4 n bytes, and nothing writes them (`# Safety`).
    let bytes = unsafe { read_bytes(context, from.cast(), 4 * n) };
    bytes.as_chunks::<4>().0.iter().map(|word| i32::from_ne_bytes(*word)).collect()
}

/// Reads all slots of a layer: for each segment, the slots of one state after the other, including
/// the gaps of the strides. `context` is that of the engine's device, or none for an engine on the
/// CPU.
pub fn read_slots(engine: &Engine, context: Option<&Context>, layer: usize) -> Vec<u8> {
    let config = engine.buffer().config();
    let mut all = Vec::new();
    for (i, segment) in config.format.as_slice().iter().enumerate() {
        let base = engine.buffer().segment_base(layer, i).expect("a layer and its segment");
        let len = config.states * config.slots * segment.stride;
        // SAFETY: a segment's base is followed by the initialised slots of all states, `stride`
        // apart, and nothing is launched while the engine is borrowed here.
        all.extend(unsafe { read_bytes(context, base.cast_const().cast(), len) });
    }
    all
}

/// Returns the bytes of all rows of a pool.
///
/// # Panics
/// If a row cannot be read.
pub fn read_rows(pool: &HostPool) -> Vec<u8> {
    let bytes = pool.format().bytes();
    let mut all = vec![0; pool.layers() * pool.rows() * bytes];
    for (at, row) in all.chunks_exact_mut(bytes).enumerate() {
        pool.read_row(at / pool.rows(), at % pool.rows(), row).unwrap();
    }
    all
}
