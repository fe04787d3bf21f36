//! The runtime and its functions as this library calls them: the table of their addresses, and for each its checked
//! form, which turns a code into a result.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;

use libloading::Library;

use super::functions::for_each_function;
use super::sys::*;
use crate::{Error, Result, invalid};

/// The ACL runtime: its functions and the library that contains them.
#[derive(Debug)]
pub struct Acl {
    pub(super) functions: Functions,
    pub(super) name: String,
    /// Keeps the functions' code mapped. The library is never closed, because the runtime starts
    /// threads that run until the process ends.
    pub(super) library: Option<ManuallyDrop<Library>>,
}

/// Whether every engine needs a function of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Every engine needs it, and CANN 8.1, the oldest supported version, has it.
    Required,
    /// An engine does without it, or only a caller's captures and the reports about a device need it. A
    /// call is an error if the runtime lacks it.
    Optional,
}

/// The type of a function by its list of arguments: it returns a code, and a text without a list.
macro_rules! function {
    (($($type:ty),*)) => { unsafe extern "C" fn($($type),*) -> c_int };
    () => { unsafe extern "C" fn() -> *const c_char };
}

/// Defines what depends on the list of functions. A function that returns a text has no checked form.
macro_rules! functions {
    ($page:literal $($section:literal {
        $($need:ident $name:ident $(($($arg:ident: $type:ty),*))?;)*
    })* beside $beside:tt) => {
        /// The functions, each as a member with its own name; absent ones are `None`.
        #[expect(non_snake_case, reason = "the runtime's own names")]
        #[derive(Debug)]
        pub(super) struct Functions {
            $($(pub $name: Option<function!($(($($type),*))?)>,)*)*
        }

        /// The names of the runtime's functions that this library calls.
        pub const FUNCTIONS: &[(&str, Need)] =
            &[$($((stringify!($name), Need::$need),)*)*];

        /// Looks up every function by name.
        ///
        /// # Safety
        /// For every name, `find` returns null or a function with the signature that the list gives
        /// the name.
        pub(super) unsafe fn fill(find: impl Fn(&CStr) -> *mut c_void) -> Functions {
            // SAFETY: `find` returns null or a function of its member's type (`# Safety`); a null pointer
            // is `None`, because both are one pointer wide.
            unsafe {
                Functions { $($($name: pointer(&find, concat!(stringify!($name), "\0")),)*)* }
            }
        }

        /// The checked functions of the runtime.
        #[expect(non_snake_case, reason = "the runtime's own names")]
        impl Acl {
            /// Returns the names of the functions with this need that the runtime lacks.
            pub fn lacks(&self, need: Need) -> impl Iterator<Item = &'static str> {
                let absent = [$($(self.functions.$name.is_none(),)*)*];
                let lacks = FUNCTIONS.iter().zip(absent).filter(move |(f, absent)| *absent && f.1 == need);
                lacks.map(|(function, _)| function.0)
            }

            $($($(
                #[doc = concat!("See the section ", $section, " of the [vendor's list](", $page, ").")]
                ///
                /// # Safety
                /// The arguments are valid as the vendor's page demands.
                pub unsafe fn $name(&self, $($arg: $type),*) -> Result<()> {
                    // SAFETY: the function has the signature of the list (`fill`), and the arguments are
                    // valid (`# Safety`).
                    let code = self.functions.$name.map(|function| unsafe { function($($arg),*) });
                    self.check(stringify!($name), code)
                }
            )?)*)*
        }
    };
}

for_each_function!(functions);

/// Looks up one function by name.
///
/// # Safety
/// `F` is `Option` of a function pointer, and `find` returns null or such a function.
unsafe fn pointer<F>(find: &impl Fn(&CStr) -> *mut c_void, name: &'static str) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let name = CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or_default();
    let address = find(name);
    // SAFETY: the pointer is null or a function of the pointer type in `F` (`# Safety`), and the sizes
    // are equal by the assertion.
    unsafe { core::mem::transmute_copy(&address) }
}

impl Acl {
    /// Turns the code of a call into a result; `None` if the runtime lacks the function. The runtime's
    /// message for this thread is copied at once, because the next call overwrites it.
    fn check(&self, call: &'static str, code: Option<c_int>) -> Result<()> {
        match code {
            Some(ACL_SUCCESS) => Ok(()),
            Some(code) => {
                // SAFETY: the message stays valid until this thread's next call.
                let text = unsafe { text(self.functions.aclGetRecentErrMsg) }.trim().to_owned();
                Err(Error::Acl { call, code, text, remedy: remedy(code) })
            }
            None => Err(invalid!("function" is call, but "{} does not have it", self.name;
                "use a newer CANN, or do without this feature")),
        }
    }
}

/// Copies the string that a function returns; empty if the function is absent or returns null.
///
/// # Safety
/// The string is valid until the next call of the runtime.
pub(super) unsafe fn text(function: Option<unsafe extern "C" fn() -> *const c_char>) -> String {
    // SAFETY: the function has no arguments.
    match function.map(|text| unsafe { text() }).filter(|text| !text.is_null()) {
        // SAFETY: `text` is not null, hence a valid string (`# Safety`).
        Some(text) => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        None => String::new(),
    }
}

/// Returns what a caller can do about a code.
pub(super) fn remedy(code: c_int) -> &'static str {
    match code {
        ACL_ERROR_LINK_STUB => "put the runtime's lib64, not devlib, on the library path",
        ACL_ERROR_RT_CONTEXT_NULL => "set a device on this thread first",
        ACL_ERROR_RT_STREAM_CONTEXT => "pass a stream of the context that the engine uses",
        ACL_ERROR_RT_INVALID_DEVICEID => "choose a device that exists",
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT => "update the driver (24.1 or newer) and CANN",
        ACL_ERROR_RT_MEMORY_ALLOCATION => {
            "ask for less memory; one registration has a limit, so pass smaller chunks"
        }
        ACL_ERROR_RT_STREAM_SYNC_TIMEOUT => "the device did not finish in time; destroy the engine",
        107_000..=107_099 | 100_000..=100_099 | 148_000..=148_099 => {
            "a defect of the caller or of this library: report it with the call"
        }
        507_000..=507_999 => "the device failed; destroy the engine, and see the device's log",
        _ => "see the runtime's log (ASCEND_SLOG_PRINT_TO_STDOUT=1)",
    }
}

// These are the sizes that a C compiler gives the structs of the public headers on 64-bit machines.
const _: () = assert!(
    size_of::<aclrtLaunchKernelAttr>() == 20
        && size_of::<aclrtLaunchKernelCfg>() == 16
        && size_of::<aclrtBinaryLoadOption>() == 20
        && size_of::<aclrtBinaryLoadOptions>() == 16
);
