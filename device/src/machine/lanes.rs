//! The operators of vectors.

use core::ops::{Add, BitAnd, BitOr, Mul, Sub};

/// A vector of 32-bit lanes with its operators, of which some take a constant or a run-time scalar `S`.
pub trait Lanes<S>:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + Add<i32, Output = Self>
    + Mul<i32, Output = Self>
    + BitAnd<i32, Output = Self>
    + BitOr<i32, Output = Self>
    + Add<S, Output = Self>
    + Sub<S, Output = Self>
    + Mul<S, Output = Self>
{
}
