//! `libavsg.so` and `libavsg.a`: the C ABI of [`avsg_capi`] and nothing else.

// Naming the crate links it; its `no_mangle` functions are the exports.
use avsg_capi as _;
