//! The description of a launch: the kernels and their parameters, the scalars, and the division of
//! the work between cores.

pub mod kernels;
pub mod rules;
pub mod share;
pub mod stage_two;
pub mod tiling;
