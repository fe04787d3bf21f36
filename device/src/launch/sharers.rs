//! Sharing: the number of cores that probe the first token of a request, and the share of each
//! core. [`crate::vector_core`] describes the method.

/// The smallest number of ids in a core's share: the lanes of a vector.
pub const MIN_SHARE: usize = 64;
/// The smallest number of cores that share a token. With fewer, examining all links at once would
/// take longer than Probe.
pub const MIN_SHARERS: usize = 4;

/// Returns the number of cores that probe for each request of a batch: 1, or as many as there are
/// for each request.
pub fn sharers(requests: usize, k: usize, cores: usize) -> usize {
    let each = (cores / requests.max(1)).min(k.div_ceil(MIN_SHARE));
    if each < MIN_SHARERS { 1 } else { each }
}

/// Returns the number of ids in the share of each sharer but the last, a multiple of 8 (a block of
/// 32 bytes).
pub fn share_len(k: usize, sharers: usize) -> usize {
    k.div_ceil(sharers * 8) * 8
}
