//! The arrays with what transfers of a plan leave out.

use std::sync::Arc;

use crate::Result;
use crate::system::allocator::Allocator;
use crate::system::array::Array;

/// The requests that transfers leave out.
#[derive(Debug, Default)]
pub(crate) struct Failed {
    /// The layer and the row that are not whole; -1 of a request that is not left out.
    pub layer: Array<i64>,
    pub row: Array<i64>,
    /// 1 for a request that the last transfer found.
    pub is_new: Array<i32>,
}

impl Failed {
    /// The bytes of a request.
    pub const REQUEST_BYTES: usize = 2 * size_of::<i64>() + size_of::<i32>();

    pub fn new(requests: usize, allocator: Option<&Arc<dyn Allocator>>) -> Result<Self> {
        let none = || Array::filled("plan", requests, -1, allocator);
        let is_new = Array::filled("plan", requests, 0, allocator)?;
        Ok(Self { layer: none()?, row: none()?, is_new })
    }

    /// Returns whether a request is left out.
    pub fn contains(&self, request: usize) -> bool {
        self.row[request] >= 0
    }
}
