//! Copies of slots from one state to others on the CPU, for a sequence that is forked.

use avsg_device::stage_two::share_start;

use super::worker_pool::copy_nanoseconds;
use crate::backend::SlotCopy;
use crate::copy::Copier;
use crate::resources::Resources;

/// Bytes that are copied to every state before the next ones, so that the others read them from a cache.
const BLOCK_BYTES: usize = 64 << 10;

/// One launch of copies. Its pieces are the shares of the cores in each layer.
pub(super) struct SlotsCopy<'a> {
    pub resources: &'a Resources,
    pub copier: Copier,
    pub copy: &'a SlotCopy<'a>,
}

impl SlotsCopy<'_> {
    /// Returns the number of pieces.
    pub fn pieces(&self) -> usize {
        self.copy.layers.len() * self.resources.config.cores
    }

    /// Returns the nanoseconds in which one core runs all pieces.
    pub fn nanoseconds(&self) -> u64 {
        let SlotCopy { layers, to, slots, .. } = self.copy;
        let rows = slots.len().saturating_mul(layers.len()).saturating_mul(to.len());
        copy_nanoseconds(rows, self.resources.pool.format().bytes())
    }

    /// Copies a share of the slots of one layer to every state.
    pub fn run(&self, piece: usize) {
        let SlotCopy { layers, from, to, slots } = *self.copy;
        let (format, cores) = (self.resources.pool.format(), self.resources.config.cores);
        let (layer, core) = (layers[piece / cores], piece % cores);
        let share =
            share_start(slots.len(), core, cores)..share_start(slots.len(), core + 1, cores);
        let view = |state, segment| self.resources.buffer.checked_view(state, layer, segment);
        for block in slots[share].chunks((BLOCK_BYTES / format.bytes()).max(1)) {
            for &state in to {
                for (i, segment) in format.as_slice().iter().enumerate() {
                    let (from, to) = (view(from, i), view(state as usize, i));
                    // SAFETY: the engine has checked both states, their blocks and that they differ, and
                    // the slots are distinct and below S, so that both ends are slots of the buffer and
                    // none of them overlap. No other piece has these slots, and no other launch runs.
                    unsafe {
                        self.copier.copy_rows(
                            block.len(),
                            segment.bytes,
                            |n| from.ptr(block[n] as usize),
                            |n| to.ptr(block[n] as usize),
                        );
                    }
                }
            }
        }
    }
}
