//! What a launch is told: the kernels and their parameters, the scalars, and who does which part.

pub mod kernels;
pub mod share;
pub mod stage_two;
pub mod tiling;
