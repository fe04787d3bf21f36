//! Where the memory of a kernel lies.

use crate::aiv::Place;

/// Where buffers lie, as [`crate::ub`] placed them: two that share bytes conflict.
pub trait Overlap {
    /// Whether two places share a byte.
    fn overlap(&self, a: &Place, b: &Place) -> bool;
}
