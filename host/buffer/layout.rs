//! The size of a device buffer, and where its layers and segments are.

use crate::rows::{self, MAX_SEGMENTS, RowFormat};
use crate::{Result, invalid};

/// The alignment of base addresses in bytes: a cache line.
const ALIGN: usize = 64;

/// The size and layout of a device buffer.
#[derive(Debug, Clone)]
pub struct BufferConfig {
    /// Number of states.
    pub states: usize,
    /// Number of layers.
    pub layers: usize,
    /// S, the number of slots of each state in each layer.
    pub slots: usize,
    /// The format of a row.
    pub format: RowFormat,
}

/// The layout of a checked [`BufferConfig`]; products of its numbers do not overflow.
pub(super) struct BufferLayout {
    pub offsets: heapless::Vec<usize, MAX_SEGMENTS>,
    pub layer_len: usize,
    pub total: usize,
}

impl BufferLayout {
    pub fn new(config: &BufferConfig) -> Result<Self> {
        let BufferConfig { states, layers, slots, ref format } = *config;
        rows::at_least_one("states", states)?;
        rows::at_least_one("layers", layers)?;
        rows::at_least_one("slots", slots)?;
        let checked = || {
            let (mut offsets, mut layer_len) = (heapless::Vec::new(), 0usize);
            for segment in format.as_slice() {
                // This cannot fail: the vector has room for the most segments that a format may
                // have.
                let _ = offsets.push(layer_len);
                let len = states.checked_mul(slots)?.checked_mul(segment.stride)?;
                layer_len = layer_len.checked_add(len.checked_next_multiple_of(ALIGN)?)?;
            }
            let total = layer_len.checked_mul(layers)?;
            (total <= isize::MAX as usize).then_some(Self { offsets, layer_len, total })
        };
        checked().ok_or_else(|| {
            invalid!(
                "buffer geometry" is format!("{states} states of {layers} layers of {slots} slots"),
                but "the buffer must fit the address space"; "ask for fewer states or slots")
        })
    }
}
