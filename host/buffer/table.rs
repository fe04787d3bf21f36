//! The caller's table of the blocks of each state, and the slots that it leads to.

use std::ptr;

use crate::rows::{self, Steps};
use crate::system::address::Address;
use crate::{Result, ensure, invalid};

/// A table of the blocks of each state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockTable {
    pub(super) entries: Address<i32>,
    pub(super) len: usize,
    /// The number of blocks of the buffer.
    pub blocks: usize,
    pub(super) shift: u32,
}

impl BlockTable {
    pub(super) fn check(&self, block_slots: usize, states: usize, slots: usize) -> Result<()> {
        ensure!(block_slots != 0, "block slots" is 0, but "a table has blocks";
            "set the strides' block_rows");
        let need = states.saturating_mul(slots / block_slots);
        // As many words as memory cannot have are more than the table has.
        ensure!(self.len >= need && need <= isize::MAX as usize / 4 && !self.entries.0.is_null()
            && self.entries.0.is_aligned(), "table of blocks" is self.len, but
            "{states} states of {} blocks need {need} words", slots / block_slots;
            "pass an array of int32");
        rows::at_least_one("blocks of the buffer", self.blocks)
    }

    /// Returns the number of entries of a state.
    pub fn entries(&self, slots: usize) -> usize {
        slots >> self.shift
    }

    /// Returns the entries of a state below the number of states.
    pub fn of(&self, state: usize, slots: usize) -> *mut i32 {
        self.entries.0.wrapping_add(state * self.entries(slots))
    }

    /// Returns the number of indices that slots may have.
    pub fn indices(&self) -> usize {
        self.blocks << self.shift
    }
}

/// The entries of one state in a table, in process memory: the caller's, or a copy of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct StateEntries {
    pub table: BlockTable,
    pub at: Address<i32>,
}

impl StateEntries {
    /// Returns the index of a slot below S; `None` if its block is not in the buffer.
    #[inline]
    pub fn index(&self, slot: usize) -> Option<usize> {
        let BlockTable { blocks, shift, .. } = self.table;
        // SAFETY: the table has the entries of every slot of a state (`BlockTable::check`), and they are
        // valid for reads and not written while work reads them (`with_block_table`). A copy has as many.
        let block = unsafe { *self.at.0.add(slot >> shift) };
        let block = usize::try_from(block).ok().filter(|&block| block < blocks)?;
        Some((block << shift) + (slot & ((1 << shift) - 1)))
    }

    /// Returns an error if some block of the state is not in the buffer.
    pub fn check(&self, state: usize, slots: usize) -> Result<()> {
        for block in 0..self.table.entries(slots) {
            if self.index(block << self.table.shift).is_none() {
                // SAFETY: as in `index`.
                let value = unsafe { *self.at.0.add(block) };
                return Err(invalid!("block" is value, but
                    "entry {block} of state {state}: the buffer has {} blocks", self.table.blocks;
                    "correct the table of blocks"));
            }
        }
        Ok(())
    }
}

/// The slots of one state, layer and segment. It does not borrow the buffer: its addresses are
/// valid until the buffer is dropped. Code that dereferences one keeps the rules of
/// [`DeviceBuffer`](super::DeviceBuffer).
#[derive(Debug, Clone, Copy)]
pub struct SlotView {
    pub(super) base: Address<u8>,
    pub(super) slots: usize,
    /// The index of slot 0 in a buffer without a table.
    pub(super) first: usize,
    pub(super) steps: Steps,
    pub(super) entries: Option<StateEntries>,
}

impl SlotView {
    /// Returns the address of `slot`; null if there is no such slot, or its block is not in the
    /// buffer.
    #[inline]
    pub fn ptr(&self, slot: usize) -> *mut u8 {
        if slot >= self.slots {
            return ptr::null_mut();
        }
        let index = match &self.entries {
            None => Some(self.first + slot),
            Some(entries) => entries.index(slot),
        };
        index.map_or(ptr::null_mut(), |at| self.base.0.wrapping_add(self.steps.offset(at)))
    }
}
