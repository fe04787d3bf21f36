//! Pinned host memory.

use super::allocation::{Allocation, MemorySource};
use crate::Result;
use crate::allocator::MemoryKind;

/// Pinned host memory, which is zeroed at first.
#[derive(Debug)]
pub struct PinnedMemory(pub(super) Allocation);

impl PinnedMemory {
    /// Allocates `bytes` bytes.
    ///
    /// # Errors
    /// If the runtime or the allocator cannot allocate them.
    pub fn new<'a>(source: impl Into<MemorySource<'a>>, bytes: usize) -> Result<Self> {
        let memory = Allocation::new(source, MemoryKind::Pinned, bytes)?;
        // SAFETY: the runtime or the allocator returned that many bytes of host memory, which no
        // other code uses.
        unsafe { memory.at.write_bytes(0, memory.bytes) };
        Ok(Self(memory))
    }

    /// Returns the words.
    ///
    /// # Safety
    /// No copy into the memory is in progress while the result is in use.
    pub unsafe fn words(&self) -> &[i32] {
        // SAFETY: this value owns the memory, which is 64-byte aligned and initialised; all bit
        // patterns are valid words. Nothing writes them by the contract (`# Safety`).
        unsafe { core::slice::from_raw_parts(self.0.at.cast(), self.0.bytes / 4) }
    }

    /// Returns the bytes to write.
    ///
    /// # Safety
    /// No copy from or into the memory is in progress while the result is in use.
    pub unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `words`; `&mut self` and the contract make the access exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.0.at.cast(), self.0.bytes) }
    }

    /// Returns the words to write.
    ///
    /// # Safety
    /// As for [`Self::bytes_mut`].
    pub unsafe fn words_mut(&mut self) -> &mut [i32] {
        // SAFETY: as for `words`; `&mut self` and the contract make the access exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.0.at.cast(), self.0.bytes / 4) }
    }
}
