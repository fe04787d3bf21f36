//! The simulated runtime as a shared library: the symbols of `libascendcl` and nothing else.
//!
//! `AVSG_SIM` sets its options (`cores=40,seed=7`), see `avsg_sim::Options`.
#![expect(clippy::missing_safety_doc, reason = "as for the real functions")]

use std::ffi::{c_char, c_int, c_void};

use avsg_sim::entries;
use avsg_sim::sys::{aclrtBinaryLoadOptions, aclrtLaunchKernelCfg, aclrtMemcpyBatchAttr};

macro_rules! export {
    ($($group:ident { $($name:ident($($arg:ident: $ty:ty),*);)* })*) => {
        $($(
            /// As documented for the real one.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
                // SAFETY: the caller's contract is the same.
                unsafe { entries::$name($($arg),*) }
            }
        )*)*
    };
}

avsg_sim::for_each_function!(export);

/// As documented for the real one.
#[unsafe(no_mangle)]
pub extern "C" fn aclGetRecentErrMsg() -> *const c_char {
    entries::aclGetRecentErrMsg()
}

/// As documented for the real one.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtGetSocName() -> *const c_char {
    entries::aclrtGetSocName()
}
