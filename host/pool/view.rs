//! The rows of one layer and segment.

use std::marker::PhantomData;
use std::ptr;

use super::layout::Start;
use crate::rows::Steps;

/// A view of the rows of one layer and segment. [`Self::ptr`] costs two loads and two
/// multiplications.
#[derive(Debug, Clone, Copy)]
pub struct RowView<'a> {
    starts: *const Start,
    rows: usize,
    shift: u32,
    steps: Steps,
    pool: PhantomData<&'a [Start]>,
}

// SAFETY: the view borrows the pool, whose tables do not change; the rest as for `HostPool`.
unsafe impl Send for RowView<'_> {}
// SAFETY: as for Send; its methods only read the table.
unsafe impl Sync for RowView<'_> {}

impl<'a> RowView<'a> {
    /// Returns a view of `rows` rows in chunks of `1 << shift`, which begin at `starts`.
    pub(super) fn new(starts: &'a [Start], rows: usize, shift: u32, steps: Steps) -> Self {
        assert!(rows.div_ceil(1 << shift) <= starts.len(), "every chunk has a start");
        Self { starts: starts.as_ptr(), rows, shift, steps, pool: PhantomData }
    }

    /// Returns the address of `row`; null if there is no such row.
    #[inline]
    pub fn ptr(&self, row: usize) -> *const u8 {
        if row >= self.rows {
            return ptr::null();
        }
        // SAFETY: `row < rows`, and the table has the chunks of `rows` rows (`new`), so the chunk
        // exists. The table is valid as long as the pool that this view borrows.
        let start = unsafe { &*self.starts.add(row >> self.shift) };
        start.ptr.wrapping_add(self.steps.offset(row & ((1 << self.shift) - 1)))
    }
}
