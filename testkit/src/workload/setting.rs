//! The parameters of an engine that a workload depends on.

use avsg::device::params::Params;
use avsg::rows::RowFormat;

/// The parameters of an engine and the largest batch of a workload.
#[derive(Clone, Debug)]
pub struct EngineSetting {
    /// Parameters of the table.
    pub params: Params,
    /// Number of request states.
    pub states: usize,
    /// Number of layers of the pool.
    pub layers: usize,
    /// Format of a row.
    pub format: RowFormat,
    /// Number of rows of the pool per request: more than 8, and a multiple of the page.
    pub rows_per_request: usize,
    /// Maximum number of requests per batch; requests beyond the number of states are padded.
    pub max_requests: usize,
}

impl EngineSetting {
    /// Returns the number of rows of the pool.
    pub fn pool_rows(&self) -> usize {
        self.states * self.rows_per_request
    }

    /// Returns the maximum number of rows per batch.
    pub fn max_rows(&self) -> usize {
        self.max_requests * self.params.tokens as usize
    }
}
