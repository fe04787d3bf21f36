//! The functions of the C ABI: what each gives and what it refuses.

mod caller_allocator;
mod caller_memory;
mod devices;
mod engines;
mod file_pool;
mod guest;
mod inputs;
mod refusals;
mod states;
mod under_way;
