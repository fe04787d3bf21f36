//! What a workload needs to know of the engine that runs it.

use avsg::device::params::Params;
use avsg::rows::RowFormat;

/// An engine from outside, and how large batches are.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The table's parameters.
    pub params: Params,
    /// Request states.
    pub states: usize,
    /// Layers of the pool.
    pub layers: usize,
    /// A row.
    pub format: RowFormat,
    /// Rows of the pool that belong to one request: a multiple of the page, and more than 8.
    pub own: usize,
    /// The most requests of a batch; with more than states some are padded.
    pub requests: usize,
}

impl Setting {
    /// Rows of the pool.
    pub fn pool_rows(&self) -> usize {
        self.states * self.own
    }

    /// The most rows of a batch.
    pub fn batch_rows(&self) -> usize {
        self.requests * self.params.tokens as usize
    }
}
