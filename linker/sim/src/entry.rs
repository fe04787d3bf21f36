//! The functions of the runtime, under their own names.
//!
//! They are defined from the list that the host has, too; the shared library exports them, and [`symbol`] finds them
//! by name.
//!
//! # Safety
//! Each pointer that a function gets is null or valid for what the real function reads and writes through
//! it. Handles and device addresses may have any value, because they are looked up.

mod argument;
mod context;
mod event;
mod kernel;
mod memory_calls;
mod process;
mod stream;

use std::ffi::{CStr, c_void};

use crate::functions::for_each_function;

/// The simulated functions.
mod simulated {
    pub(super) use super::{
        context::*, event::*, kernel::*, memory_calls::*, process::*, stream::*,
    };
}

macro_rules! define {
    ($page:literal $($section:tt {
        $($need:ident $name:ident $(($($arg:ident: $ty:ty),*))?;)*
    })*) => {
        /// Every function, with the runtime's own name and signature and its C calling convention.
        #[expect(non_snake_case, reason = "the runtime's own names")]
        pub mod functions {
            use std::ffi::{c_char, c_int, c_void};

            use super::argument::Argument;
            use super::simulated;
            use crate::call::{call, message};
            use crate::sys::*;

            $($($(
                /// Behaves as the function of `libascendcl` with this name.
                ///
                /// # Safety
                /// Each pointer is null or valid for what the real function reads and writes
                /// through it.
                pub unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
                    // SAFETY: each pointer is null or valid for what the real function does (`# Safety`).
                    $(let $arg = unsafe { Argument::received($arg) };)*
                    call(stringify!($name), |machine| simulated::$name(machine, $($arg),*))
                }
            )?)*)*

            /// Returns the message of this thread's last call if it failed, else null. The pointer
            /// is valid until the thread's next call.
            pub extern "C" fn aclGetRecentErrMsg() -> *const c_char {
                message()
            }

            /// Returns the name of the simulated chip.
            pub extern "C" fn aclrtGetSocName() -> *const c_char {
                c"Ascend910B3".as_ptr()
            }
        }

        /// Returns the address of a function by its name, as a dynamic loader does.
        pub fn symbol(name: &str) -> Option<*const c_void> {
            match name {
                $($(stringify!($name) => Some(functions::$name as *const c_void),)*)*
                _ => None,
            }
        }
    };
}

for_each_function!(define);

/// Returns the address of a function by its name, or null if there is none.
pub fn resolve(name: &CStr) -> *mut c_void {
    name.to_str().ok().and_then(symbol).map_or(core::ptr::null_mut(), <*const c_void>::cast_mut)
}
