//! Which library this is.

use std::ffi::{CStr, c_char};

/// The version of this interface. It is raised only when a program that was built against an older
/// header would no longer work; functions, codes and fields at the end of structs come without.
pub const AVSG_ABI_VERSION: u32 = 1;

/// The interface version of the library that is loaded. A program built with another
/// `AVSG_ABI_VERSION` must not go on.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_abi_version() -> u32 {
    AVSG_ABI_VERSION
}

/// The library's version, such as "0.1.0". Valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_version() -> *const c_char {
    const TEXT: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(text) => text,
            Err(_) => panic!("a version has no NUL in it"),
        };
    TEXT.as_ptr()
}

/// The devices that this library drives, separated by spaces: names for `avsg_engine_config.device`.
/// "ascend" needs a runtime that is looked for when an engine is created; "ascend-sim" is there only if
/// the library was built with its simulator (`cargo build -p avsg-capi --features sim`). Valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_devices() -> *const c_char {
    let names = if cfg!(feature = "sim") { c"cpu ascend ascend-sim" } else { c"cpu ascend" };
    names.as_ptr()
}
