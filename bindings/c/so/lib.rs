//! `libavsg.so` and `libavsg.a`, which export the C ABI of [`avsg_capi`].

// The import links the crate, whose `no_mangle` functions are the exports.
use avsg_capi as _;
