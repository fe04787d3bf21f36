//! A range of memory that holds rows.

use std::ptr::NonNull;

/// A contiguous range of whole pages that holds rows of one layer and segment.
#[derive(Debug, Clone, Copy)]
pub struct Chunk {
    ptr: NonNull<u8>,
    len: usize,
}

impl Chunk {
    /// Returns a chunk; `None` if `ptr` is null.
    pub fn new(ptr: *mut u8, len: usize) -> Option<Self> {
        NonNull::new(ptr).map(|ptr| Self { ptr, len })
    }

    /// Returns the address of the first byte.
    pub fn ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Returns the address behind the last byte.
    pub(super) fn end(&self) -> *mut u8 {
        self.ptr().wrapping_add(self.len)
    }

    /// Makes the chunk end at `end`, unless it ends behind that.
    pub(super) fn extend_to(&mut self, end: *mut u8) {
        self.len = self.len.max(end.addr() - self.ptr().addr());
    }

    /// Returns the length in bytes. The last chunk of a segment may be shorter than the others.
    #[expect(clippy::len_without_is_empty, reason = "a chunk holds at least one row")]
    pub fn len(&self) -> usize {
        self.len
    }
}
