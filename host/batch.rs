//! One decode step's inputs, in memory of this process.

/// One decode step's batch. Arrays are per request unless they say otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Selected ids, row by row (a row is a token of a request); negative is padding.
    pub ids: &'a [i32],
    /// Words from row to row of `ids`, at least `k`.
    pub ids_stride: usize,
    /// Ids per row, at most the geometry's K.
    pub k: usize,
    /// First row of each request, and the number of rows at the end: requests + 1 entries, from 0.
    pub cu_q: &'a [i32],
    /// State of each request, -1 for a padded request: its slots are -1 and it copies nothing.
    pub state: &'a [i32],
    /// Generation: a value other than the state's last one starts cold.
    pub generation: &'a [i32],
    /// Tokens whose KV was final before this step; -1: no invalidation, no fresh rows.
    pub stable_len: &'a [i32],
    /// Sequence length with this step's tokens: ids must be below it.
    pub seq_len: &'a [i32],
    /// Host blocks of each request, `block_stride` entries each; empty when the geometry's page is 0.
    pub block_table: &'a [i32],
    /// Entries of one request in `block_table`.
    pub block_stride: usize,
}

/// The rows of this step, which exist only on the device: per segment, row r of the batch at
/// r · stride.
#[derive(Clone, Copy, Debug)]
pub struct Fresh<'a> {
    /// One slice per segment.
    pub segments: &'a [&'a [u8]],
}

impl Batch<'_> {
    /// Requests, padded ones included.
    pub(crate) fn requests(&self) -> usize {
        self.state.len()
    }

    /// Rows that a checked `cu_q` counts.
    pub(crate) fn rows(&self) -> usize {
        self.cu_q.last().map_or(0, |&rows| usize::try_from(rows).unwrap_or(0))
    }
}

/// One layer of a step: its number, and the rows that only this step has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer<'a> {
    pub number: usize,
    pub fresh: Option<&'a Fresh<'a>>,
}

/// A call of a decode step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'a> {
    /// Stage One.
    Plan(&'a Batch<'a>),
    /// Stage Two of one layer, by an earlier plan.
    Transfer(Layer<'a>),
    /// Stage One, SyncAll, Stage Two of one layer.
    Both(&'a Batch<'a>, Layer<'a>),
}

impl<'a> Step<'a> {
    /// What Stage One works on.
    pub fn batch(&self) -> Option<&'a Batch<'a>> {
        match *self {
            Self::Plan(batch) | Self::Both(batch, _) => Some(batch),
            Self::Transfer(_) => None,
        }
    }

    /// Where Stage Two copies to.
    pub fn layer(&self) -> Option<Layer<'a>> {
        match *self {
            Self::Transfer(layer) | Self::Both(_, layer) => Some(layer),
            Self::Plan(_) => None,
        }
    }
}
