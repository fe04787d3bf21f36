//! The C ABI, which `libavsg.so` exports and `bindings/c/include/avsg.h` declares.
//!
//! The names are those of C, and the doc comments address a C programmer, because cbindgen
//! generates the header from them (`bindings/c/tests/header`). `bindings/c/header.txt` is the header without its
//! declarations: the rules of every function, and the order of the items.

#![expect(non_camel_case_types, reason = "the types have the names of C")]
#![expect(clippy::missing_safety_doc, reason = "the header's rules Pointers and Streams say it")]
#![allow(rustdoc::broken_intra_doc_links, reason = "C's indices, such as valid[row], are no links")]

// First, because its macro `contract` is in scope in the modules behind it.
#[macro_use]
mod boundary;

mod allocator;
mod ascend;
mod buffer;
mod c_text;
mod engine;
mod engine_info;
mod handle;
mod layout;
mod log;
mod plan;
mod pool;
mod pool_info;
mod segments;
mod session;
mod share;
mod silence;
mod sized_structs;
mod sizes;
mod state;
mod status;
mod step;
mod under_way;
mod version;
mod workers;

pub use {
    allocator::*, ascend::*, buffer::*, engine::*, engine_info::*, layout::*, log::*, plan::*,
    pool::*, pool_info::*, segments::*, session::*, share::*, sizes::*, state::*, status::*,
    step::*, under_way::*, version::*, workers::*,
};
