//! What callers read of a plan: its arrays, and the miss list of a request.

/// The miss list of one request, in token order. All slices have the same length.
#[derive(Clone, Copy, Debug)]
pub struct Misses<'a> {
    /// Positions: token · K + index in the row, ascending.
    pub position: &'a [i32],
    /// Ids of the missed tokens.
    pub id: &'a [i32],
    /// Slots that the ids were given, within the state of the request.
    pub slot: &'a [i32],
    /// Rows of the host pool; -1 - n stands for fresh row n of the request.
    pub row: &'a [i32],
}

/// All arrays of a plan, with the lengths of the largest batch that it can hold.
#[derive(Clone, Copy, Debug)]
pub struct PlanArrays<'a> {
    /// K, the number of elements per row in `slot` and in the miss lists.
    pub k: usize,
    /// `[rows, K]`, the slot of each id; -1 for padding.
    pub slot: &'a [i32],
    /// `[rows]`, the number of valid ids.
    pub valid: &'a [i32],
    /// `[rows]`, the number of misses.
    pub row_misses: &'a [i32],
    /// `[requests + 1]`, the first row of each request, then the number of rows.
    pub cu_q: &'a [i32],
    /// `[requests, summary::WORDS]`, the summaries ([`summary`](avsg_device::request::summary)).
    pub summary: &'a [i32],
    /// `[requests]`, the layer of [`Plan::failures`](super::Plan::failures); -1 for a request that did not fail.
    pub failed_layer: &'a [i64],
    /// `[requests]`, the row of [`Plan::failures`](super::Plan::failures); -1 for a request that did not fail.
    pub failed_row: &'a [i64],
    /// `[requests]`, 1 for a request that the last transfer found to fail; else 0.
    pub failed_new: &'a [i32],
    /// The miss lists, `[rows, K]` each. The list of a request begins at K times its first row.
    pub miss: Misses<'a>,
}
