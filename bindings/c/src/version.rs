//! The versions and the devices of this library.

use std::ffi::c_char;

/// The version of this interface. It changes only if programs that were built with an older header
/// would break; new functions, constants, and fields at the end of structs do not change it.
pub const AVSG_ABI_VERSION: u32 = 1;

/// Returns the interface version of the loaded library. A program must not use a library whose
/// version differs from the `AVSG_ABI_VERSION` that it was built with.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_abi_version() -> u32 {
    AVSG_ABI_VERSION
}

/// Returns the version of the library, such as "0.1.0". The string is valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns the names for `avsg_engine_config.device`, separated by spaces. "ascend" needs a runtime
/// library, which the creation of an engine searches. "ascend-sim" is among them if the library was
/// built with the simulator (`cargo build -p avsg-capi-so --features sim`). The string is valid for
/// ever.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_devices() -> *const c_char {
    let names = if cfg!(feature = "sim") { c"cpu ascend ascend-sim" } else { c"cpu ascend" };
    names.as_ptr()
}
