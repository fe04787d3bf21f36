//! Limits of the unified buffer.

/// Bytes of unified buffer that a kernel may use. `Select` overwrites the memory above.
pub const UB_BYTES: u32 = 184 * 1024;
/// Bytes of unified buffer for Stage One.
pub const STAGE_ONE_BYTES: u32 = UB_BYTES - FRAME_BYTES;
/// Bytes behind the memory of Stage One that the request loop uses: the launch scalars, the words
/// of 16 requests, and 144 words of 0 and of -1.
pub const FRAME_BYTES: u32 = 128 + (5 * 64 + 32) + 64 + 512;
