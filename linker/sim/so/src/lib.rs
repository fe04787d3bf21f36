//! The simulated runtime as a shared library: the symbols of `libascendcl` and nothing else.
//!
//! The environment variable `AVSG_SIM` names faults of kernels (`hang=avsg_plan`), see `avsg_sim::Options`.
#![expect(clippy::missing_safety_doc, reason = "the CANN documentation states the contracts")]

use std::ffi::{c_char, c_int, c_void};

use avsg_sim::entries;
use avsg_sim::sys::*;
use functions::for_each_function;

#[path = "../../../../host/ascend/acl/functions.rs"]
mod functions;

macro_rules! export {
    ($page:literal $($section:tt {
        $($need:ident $name:ident $(($($arg:ident: $ty:ty),*))?;)*
    })*) => {
        $($($(
            /// Behaves as the function of `libascendcl` with this name.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
                // SAFETY: the called function has the same contract.
                unsafe { entries::$name($($arg),*) }
            }
        )?)*)*
    };
}

for_each_function!(export);

/// Returns the message of this thread's last failed call, as the function of `libascendcl`.
#[unsafe(no_mangle)]
pub extern "C" fn aclGetRecentErrMsg() -> *const c_char {
    entries::aclGetRecentErrMsg()
}

/// Returns the name of the simulated chip, as the function of `libascendcl`.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtGetSocName() -> *const c_char {
    entries::aclrtGetSocName()
}
