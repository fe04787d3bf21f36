//! The structs of the header that begin with their size.

use std::mem::offset_of;

use crate::boundary::SizedStruct;
use crate::*;

/// Implements [`SizedStruct`] for structs, each with its bytes in the first version of the header.
macro_rules! sized_structs {
    ($($name:ident: $bytes:literal,)+) => {$(
        // SAFETY: the struct is repr(C), its first field and its bytes are asserted below, its fields
        // fill these bytes without padding, and they are integers, floats, pointers and functions
        // that may be NULL, of which any bytes are a value.
        unsafe impl SizedStruct for $name {
            const NAME: &'static str = stringify!($name);
            const FIRST_SIZE: usize = $bytes;
        }
        const _: () = assert!(offset_of!($name, size) == 0 && size_of::<$name>() == $bytes);
    )+};
}

sized_structs! {
    avsg_allocator: 32,
    avsg_ascend: 32,
    avsg_batch: 160,
    avsg_buffer: 40,
    avsg_caller_buffer: 120,
    avsg_engine_config: 112,
    avsg_engine_info: 168,
    avsg_engine_stats: 120,
    avsg_fresh: 80,
    avsg_load: 64,
    avsg_memory: 88,
    avsg_plan_arrays: 112,
    avsg_plan_counters: 64,
    avsg_pool_config: 136,
    avsg_pool_file: 88,
    avsg_pool_info: 240,
    avsg_pool_layout: 112,
    avsg_session: 48,
    avsg_tuning: 40,
    avsg_workers_config: 56,
}
