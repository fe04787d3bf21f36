//! The overlap of places in memory.

use crate::ascend::aiv::Place;

/// The positions of buffers, as [`crate::ascend::ub`] placed them: two places that share a byte conflict.
pub trait Overlap {
    /// Returns whether two places share a byte.
    fn overlap(&self, a: &Place, b: &Place) -> bool;
}
