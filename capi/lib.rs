//! `libavsg.so` and `libavsg.a`: the C ABI of [`avsg_host::capi`] and nothing else.

// Naming the crate links it; its `no_mangle` functions are the exports.
use avsg_host as _;
