//! What a process asks of its operating system: memory and its limits, CPUs, files, and whether it is a forked child.

pub(crate) mod address;
pub mod allocator;
pub(crate) mod array;
pub mod available_memory;
pub(crate) mod cgroups;
pub mod cpus;
pub(crate) mod files;
pub mod fork;
pub(crate) mod mapping;
pub(crate) mod reserve;
pub(crate) mod stored_words;
