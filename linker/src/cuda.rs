//! One block of threads of a GPU for each request: from the checked tape to CUDA C++ that includes no
//! header of a toolkit.
//!
//! Thread t works on the lanes t, t + `THREADS`, .. of a sweep, and run-time scalars are the same in all
//! threads. [`fuse`] joins sweeps, [`place`] gives columns addresses in shared memory, [`order`] adds
//! the barriers of a block, and [`print`] writes the text. What no tape says is in the files of
//! `cuda/kernels/`, which are the same for every geometry: scans, searches, lifetimes, and copies.

mod access;
mod fuse;
pub mod kernels;
mod order;
mod place;
mod print;
mod stage_one;

pub use kernels::{Kernels, cuda};
pub use place::{Plan, TooLarge};
pub use stage_one::{Failed, StageOneText, record, text};

/// What the text of a geometry depends on beside the geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The threads of a block: 256, 512 or 1024.
    pub threads: u32,
    /// The bytes of shared memory that a block may use.
    pub shared_bytes: u32,
}

impl Default for Options {
    /// Blocks of 1024 threads, and the shared memory that a block of an H100 may use.
    fn default() -> Self {
        Self { threads: 1024, shared_bytes: 227 * 1024 }
    }
}
