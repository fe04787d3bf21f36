//! The C ABI, which `libavsg.so` exports and `include/avsg.h` declares.
//!
//! The names are those of C, and the doc comments address a C programmer, because cbindgen
//! generates the header from them (`capi/tests/header.rs`). The header begins with
//! `capi/intro.txt`, which states the rules of every function by name: Status, Pointers, Structs,
//! Handles, Threads, Streams, Units. `handle`, `sized` and `status` implement them.

#![expect(non_camel_case_types, reason = "the types have the names of C")]
#![allow(rustdoc::broken_intra_doc_links, reason = "C's indices, such as valid[row], are no links")]

mod allocator;
mod arrays;
mod c_text;
mod caller_buffer;
mod choices;
mod config;
mod engine;
mod handle;
mod layout;
mod log;
mod overlap;
mod plan;
mod pool;
mod pool_config;
mod queue;
mod rows;
mod share;
mod silence;
mod sized;
mod sizes;
mod state;
mod stats;
mod status;
mod step;
mod version;
mod workers;

pub use allocator::*;
pub use arrays::*;
pub use caller_buffer::*;
pub use choices::*;
pub use config::*;
pub use engine::*;
pub use layout::*;
pub use log::*;
pub use plan::*;
pub use pool::*;
pub use pool_config::*;
pub use rows::*;
pub use share::*;
pub use sizes::*;
pub use state::*;
pub use stats::*;
pub use status::*;
pub use step::*;
pub use version::*;
pub use workers::*;
