//! The segments of a row.

use avsg::rows::MAX_SEGMENTS;

/// The largest number of segments of a row.
pub const AVSG_MAX_SEGMENTS: usize = 4;
const _: () = assert!(AVSG_MAX_SEGMENTS == MAX_SEGMENTS);
