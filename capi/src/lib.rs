//! The C ABI: what `libavsg.so` exports and `include/avsg.h` declares.
//!
//! Names here are the names in C, and doc comments are written for a C programmer: cbindgen turns
//! this module into the header (`capi/tests/header.rs` compares). Rules that hold everywhere:
//! - a handle is a number dressed as a pointer, looked up at each call (`handle`), so that one that
//!   was destroyed, or is of another kind, or in use by another thread, is an error and never a wild
//!   access;
//! - no panic leaves a function (`status::enter`); the handle that it happened under is unusable;
//! - structs begin with their size and may grow at the end (`sized`); zero is every field's default;
//! - whatever C passes is checked before Rust sees a reference to it.

#![expect(non_camel_case_types, reason = "the names that C sees")]
#![allow(rustdoc::broken_intra_doc_links, reason = "C's indices, such as valid[row], are no links")]

mod arrays;
mod config;
mod engine;
mod handle;
mod plan;
mod pool;
mod pool_config;
mod queue;
mod rows;
mod share;
mod sized;
mod status;
mod step;
mod version;

pub use arrays::*;
pub use config::*;
pub use engine::*;
pub use plan::*;
pub use pool::*;
pub use pool_config::*;
pub use rows::*;
pub use share::*;
pub use status::*;
pub use step::*;
pub use version::*;
