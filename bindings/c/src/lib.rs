//! The C ABI, which `libavsg.so` exports and `bindings/c/include/avsg.h` declares.
//!
//! The names are those of C, and the doc comments address a C programmer, because cbindgen
//! generates the header from them (`bindings/c/tests/header`). `bindings/c/header.txt` is the header without its
//! declarations: the rules of every function, and the order of the modules.

#![expect(non_camel_case_types, reason = "the types have the names of C")]
#![expect(clippy::missing_safety_doc, reason = "the header's rules Pointers and Streams say it")]
#![allow(rustdoc::broken_intra_doc_links, reason = "C's indices, such as valid[row], are no links")]

// First, because the macro `contract` is in scope in the modules behind it.
#[macro_use]
mod contract;

mod allocator;
mod arrays;
mod ascend;
mod buffer;
mod c_text;
mod caller_buffer;
mod config;
mod counters;
mod destroy;
mod engine;
mod engine_info;
mod fresh_list;
mod handle;
mod indexers;
mod layout;
mod log;
mod lost_ids;
mod message;
mod outputs;
mod page_table;
mod plan;
mod pool;
mod pool_config;
mod pool_file;
mod pool_info;
mod rows;
mod segments;
mod share;
mod silence;
mod sized;
mod sized_structs;
mod sizes;
mod stages;
mod state;
mod stats;
mod status;
mod status_name;
mod step;
mod tuning;
mod version;
mod workers;

pub use {
    allocator::*, arrays::*, ascend::*, buffer::*, caller_buffer::*, config::*, counters::*,
    destroy::*, engine::*, engine_info::*, fresh_list::*, layout::*, log::*, lost_ids::*,
    message::*, outputs::*, page_table::*, plan::*, pool::*, pool_config::*, pool_file::*,
    pool_info::*, rows::*, segments::*, share::*, sizes::*, stages::*, state::*, stats::*,
    status::*, status_name::*, step::*, tuning::*, version::*, workers::*,
};
