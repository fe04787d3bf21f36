//! The slots of one state, layer and segment.

use std::ptr;

use super::caller::BlockTable;
use crate::rows::Steps;

/// The slots of one state, layer and segment. It does not borrow the buffer: its addresses are
/// valid until the buffer is dropped.
#[derive(Debug, Clone, Copy)]
pub struct SlotView {
    pub(super) base: *mut u8,
    pub(super) slots: usize,
    /// The index of slot 0 in a buffer without a table.
    pub(super) first: usize,
    pub(super) steps: Steps,
    /// The caller's table, and its entries of the state.
    pub(super) blocks: Option<(BlockTable, *const i32)>,
}

// SAFETY: the view is addresses and numbers. Code that dereferences the address of a slot keeps the
// rules of `DeviceBuffer`.
unsafe impl Send for SlotView {}
// SAFETY: the fact above holds for shared references, too.
unsafe impl Sync for SlotView {}

impl SlotView {
    /// Returns the address of `slot`; null if there is no such slot, or its block is not in the
    /// buffer.
    #[inline]
    pub fn ptr(&self, slot: usize) -> *mut u8 {
        if slot >= self.slots {
            return ptr::null_mut();
        }
        let index = match self.blocks {
            None => Some(self.first + slot),
            Some((table, entries)) => table.index(entries, slot),
        };
        index.map_or(ptr::null_mut(), |at| self.base.wrapping_add(self.steps.offset(at)))
    }
}
