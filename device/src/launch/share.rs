//! Sharing: how many cores probe the first token of a request, and which part of it each probes.
//! [`crate::batched`] says how.

/// Ids below which a core's part is not made smaller: a vector's lanes.
pub const MIN_SHARE: usize = 64;
/// Cores below which a request is not shared: looking at all links at once would take longer than Probe.
pub const MIN_SHARERS: usize = 4;

/// Pieces of a table's plane on its way in, of which sharers begin with different ones.
pub const PLANE_PIECES: usize = 4;

/// How many cores probe for each request of a batch: one, or as many as there are for each.
pub fn sharers(requests: usize, k: usize, cores: usize) -> usize {
    let each = (cores / requests.max(1)).min(k.div_ceil(MIN_SHARE));
    if each < MIN_SHARERS { 1 } else { each }
}

/// Ids of each sharer's part but the last: whole blocks.
pub fn share_len(k: usize, sharers: usize) -> usize {
    k.div_ceil(sharers * 8) * 8
}
