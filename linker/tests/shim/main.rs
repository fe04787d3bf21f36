//! The shim: correct programs give correct data, wrong ones are refused, and missing
//! synchronisation is found.

/// Compiles a C++ file of this folder.
macro_rules! kernels {
    ($file:literal) => {
        $crate::harness::compile(concat!(include_str!("copies.h"), include_str!($file)))
    };
}

mod cores;
mod half;
mod harness;
mod hazards;
mod ops;
mod rules;
#[expect(dead_code, reason = "this program takes no sample of a matrix")]
#[path = "../../../tests/kit/src/tier.rs"]
mod tier;
