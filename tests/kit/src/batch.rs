//! Batches, and the requests that one has.

use std::ops::Range;

pub use avsg_measure::batch::OwnedBatch;

/// One request of a batch.
pub struct BatchRequest<'a> {
    /// State, or none for a padded request.
    pub state: Option<usize>,
    /// Rows of the batch, one for each token.
    pub rows: Range<usize>,
    /// `stable_len`, or none for a read-only request.
    pub stable: Option<usize>,
    /// `seq_len`, or 0 if it is negative.
    pub seq: usize,
    /// Block table.
    pub blocks: &'a [i32],
}

/// Returns the requests of a batch in their order.
pub fn requests(batch: &OwnedBatch) -> impl Iterator<Item = BatchRequest<'_>> {
    (0..batch.state.len()).map(|r| BatchRequest {
        state: usize::try_from(batch.state[r]).ok(),
        rows: batch.cu_q[r] as usize..batch.cu_q[r + 1] as usize,
        stable: usize::try_from(batch.stable[r]).ok(),
        seq: batch.seq[r].max(0) as usize,
        blocks: &batch.blocks[r * batch.block_stride..][..batch.block_stride],
    })
}
