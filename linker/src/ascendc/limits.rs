//! What of the unified buffer a kernel may use.

/// Bytes of unified buffer that a kernel may use: `Select` scribbles above.
pub const UB_BYTES: u32 = 184 * 1024;
/// What the request loop keeps behind Stage One's memory: scalars, words of a tile of requests, a
/// column of zeros and one of -1.
pub const FRAME_BYTES: u32 = 128 + (5 * 64 + 32) + 64 + 512;
