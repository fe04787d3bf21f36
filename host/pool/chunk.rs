//! Ranges of memory that hold rows, and the addresses of the rows in them.

use std::ptr;

use crate::rows::Steps;
use crate::system::address::Address;

/// A contiguous range of whole pages that holds rows of one layer and segment.
#[derive(Debug, Clone, Copy)]
pub struct Chunk {
    at: Address<u8>,
    pub(super) len: usize,
}

impl Chunk {
    /// Returns a chunk; `None` if `ptr` is null.
    pub fn new(ptr: *mut u8, len: usize) -> Option<Self> {
        (!ptr.is_null()).then_some(Self { at: Address(ptr), len })
    }

    /// Returns the address of the first byte.
    pub fn ptr(&self) -> *mut u8 {
        self.at.0
    }

    /// Returns the address behind the last byte.
    pub(super) fn end(&self) -> *mut u8 {
        self.ptr().wrapping_add(self.len)
    }

    /// Returns the length in bytes. The last chunk of a segment may be shorter than the others.
    #[expect(clippy::len_without_is_empty, reason = "a chunk holds at least one row")]
    pub fn len(&self) -> usize {
        self.len
    }
}

/// The first row of a chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub at: Address<u8>,
    pub device: DeviceStart,
}

impl Start {
    /// Returns the address in this process.
    pub fn in_process(&self) -> Option<usize> {
        Some(self.at.0.addr())
    }

    /// Returns the address on a device, if the caller gave it.
    pub fn on_device(&self) -> Option<usize> {
        match self.device {
            DeviceStart::Address(address) => Some(address as usize),
            DeviceStart::Registered(..) => None,
        }
    }
}

/// How a device addresses the first row of a chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DeviceStart {
    /// The index of a registered range, and the bytes from its start.
    Registered(usize, usize),
    /// An address that the caller gave.
    Address(u64),
}

/// A view of the rows of one layer and segment. [`Self::ptr`] costs two loads and two
/// multiplications.
#[derive(Debug, Clone, Copy)]
pub struct RowView<'a> {
    starts: &'a [Start],
    rows: usize,
    shift: u32,
    steps: Steps,
}

impl<'a> RowView<'a> {
    /// Returns a view of `rows` rows in chunks of `1 << shift`, which begin at `starts`.
    pub(super) fn new(starts: &'a [Start], rows: usize, shift: u32, steps: Steps) -> Self {
        assert!(rows.div_ceil(1 << shift) <= starts.len(), "every chunk has a start");
        Self { starts, rows, shift, steps }
    }

    /// Returns the address of `row`; null if there is no such row.
    #[inline]
    pub fn ptr(&self, row: usize) -> *const u8 {
        if row >= self.rows {
            return ptr::null();
        }
        // SAFETY: `row < rows`, and `starts` has the chunks of `rows` rows (`new`), so the chunk exists.
        let start = unsafe { self.starts.get_unchecked(row >> self.shift) };
        start.at.0.wrapping_add(self.steps.offset(row & ((1 << self.shift) - 1)))
    }
}
