//! The overlap of places in memory.

use crate::ascend::aiv::{Part, Place};

/// The positions of buffers, as [`crate::ascend::ub`] placed them: two places that share a byte conflict.
pub trait Overlap {
    /// Returns whether two places share a byte.
    fn overlap(&self, a: &Place, b: &Place) -> bool;
}

/// The memory of a function: its parameters and buffers are apart, and so are bytes of one buffer.
pub struct Apart;

impl Overlap for Apart {
    fn overlap(&self, a: &Place, b: &Place) -> bool {
        let (Place::Ub(x, one), Place::Ub(y, other)) = (a, b) else { return a == b };
        x == y
            && match (one, other) {
                (Part::Bytes(from, to), Part::Bytes(start, end)) => from < end && start < to,
                (Part::Tile, Part::Past) | (Part::Past, Part::Tile) => false,
                _ => true,
            }
    }
}
