//! The C ABI, which `libavsg.so` exports and `include/avsg.h` declares.
//!
//! The names are those of C, and the doc comments address a C programmer, because cbindgen
//! generates the header from them (`capi/tests/header`). `capi/header.txt` is the header without its
//! declarations: the rules of every function, and the order of the modules.

#![expect(non_camel_case_types, reason = "the types have the names of C")]
#![expect(
    clippy::missing_safety_doc,
    reason = "the header's rules Pointers and Streams say it once"
)]
#![allow(rustdoc::broken_intra_doc_links, reason = "C's indices, such as valid[row], are no links")]

mod allocator;
mod arrays;
mod ascend;
mod buffer;
mod c_text;
mod caller_buffer;
mod config;
mod contract;
mod counters;
mod destroy;
mod engine;
mod engine_info;
mod handle;
mod layout;
mod log;
mod message;
mod outputs;
mod overlap;
mod plan;
mod pool;
mod pool_config;
mod pool_info;
mod queue;
mod rows;
mod segments;
mod share;
mod silence;
mod sized;
mod sizes;
mod state;
mod stats;
mod status;
mod status_name;
mod step;
mod tuning;
mod version;
mod workers;

pub use allocator::*;
pub use arrays::*;
pub use ascend::*;
pub use buffer::*;
pub use caller_buffer::*;
pub use config::*;
pub use counters::*;
pub use destroy::*;
pub use engine::*;
pub use engine_info::*;
pub use layout::*;
pub use log::*;
pub use message::*;
pub use outputs::*;
pub use plan::*;
pub use pool::*;
pub use pool_config::*;
pub use pool_info::*;
pub use rows::*;
pub use segments::*;
pub use share::*;
pub use sizes::*;
pub use state::*;
pub use stats::*;
pub use status::*;
pub use status_name::*;
pub use step::*;
pub use tuning::*;
pub use version::*;
pub use workers::*;
