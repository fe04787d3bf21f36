//! The size of a device buffer.

use crate::rows::{self, RowFormat, Segment};
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

impl BufferConfig {
    /// Returns the bytes of the buffer.
    ///
    /// # Errors
    /// If a number is 0 or the buffer does not fit the address space.
    pub fn bytes(&self) -> Result<usize> {
        let BufferConfig { states, layers, slots, ref format } = *self;
        rows::at_least_one("states", states)?;
        rows::at_least_one("layers", layers)?;
        rows::at_least_one("slots", slots)?;
        let add = |sum: usize, segment: &Segment| {
            let len = states.checked_mul(slots)?.checked_mul(segment.stride)?;
            sum.checked_add(len.checked_next_multiple_of(ALIGN)?)
        };
        let layer = format.as_slice().iter().try_fold(0, add);
        let total = layer.and_then(|layer| layer.checked_mul(layers));
        total.filter(|&total| total <= isize::MAX as usize).ok_or_else(|| {
            invalid!(
                "buffer geometry" is format!("{states} states of {layers} layers of {slots} slots"),
                but "the buffer must fit the address space"; "ask for fewer states or slots")
        })
    }

    /// Returns the bytes from a segment of a layer to the next one, if [`Self::bytes`] are no error.
    pub(super) fn segment_bytes(&self, segment: &Segment) -> usize {
        (self.states * self.slots * segment.stride).next_multiple_of(ALIGN)
    }
}
