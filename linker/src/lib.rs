//! Records kernels.
