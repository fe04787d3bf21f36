#![no_std]
//! AVSG kernels.
