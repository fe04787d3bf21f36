//! The Ascend Computing Language (ACL), found at run time.
//!
//! There are two levels: [`sys`] has the types that are generated from `acl.h`, among them the
//! table of functions; the types of this module own handles of the runtime, call its functions and
//! release the handles on drop. Every method that calls the runtime returns the error of the call, for
//! example of an allocation that is too large or of work that failed; `# Errors` lists further errors only. Nothing links against the runtime, so a build needs no
//! CANN, and a machine without it gets an error that lists the libraries that were tried.
//!
//! A `Drop` cannot return an error, so it stores the error in the [`Context`], where
//! [`Context::take_error`] or [`Context::finish`] returns it. Calls on other objects of the context
//! do not, because they have not failed. A release that failed is tried once more, because a failed
//! call of the runtime has changed nothing; both errors are stored.

mod context;
mod functions;
mod kernel;
mod memory;
mod owned;
mod registration;
mod stream;
#[expect(missing_docs, reason = "generated; acl.h has the comments")]
#[expect(non_camel_case_types, non_snake_case, reason = "the runtime's own names")]
#[rustfmt::skip]
pub mod sys;

use std::ffi::{CStr, c_char, c_int};
use std::fmt;

pub use context::{Context, Current};
pub use functions::{OPTIONAL, REQUIRED, Resolve, Source};
pub use kernel::{Args, Binary};
pub use memory::{DeviceMemory, MemorySource, PinnedMemory};
pub use registration::Registration;
pub use stream::{Event, Graph, Stream};

use crate::{Error, Result, invalid};
use sys::Functions;

/// Calls a function of the table and turns its code into a result. The call is unsafe: the function
/// has the signature that `acl.h` gives it (`functions::fill`), and the SAFETY comment at the call
/// tells why its arguments are valid.
macro_rules! call {
    ($acl:expr, $name:ident($($arg:expr),* $(,)?)) => {
        match $acl.functions.$name {
            Some(function) => $acl.check(stringify!($name), function($($arg),*)),
            None => Err($acl.missing(stringify!($name))),
        }
    };
}
use call;

/// The ACL runtime: its functions and the library that contains them.
pub struct Acl {
    functions: Functions,
    name: String,
    /// Keeps the functions' code mapped. The library is never closed, because the runtime starts
    /// threads that run until the process ends.
    library: Option<std::mem::ManuallyDrop<libloading::Library>>,
}

impl Acl {
    /// Finds the runtime and initialises it (`aclInit`). It is no error if the process has
    /// initialised it before, for example in a framework. It is never finalised.
    ///
    /// # Errors
    /// If no library is found, or the library is the link stub or older than CANN 8.1.
    pub fn open(source: &Source) -> Result<Self> {
        let acl = functions::open(source)?;
        // SAFETY: null selects the default configuration.
        match unsafe { call!(acl, aclInit(core::ptr::null())) } {
            Ok(()) | Err(Error::Acl { code: sys::ACL_ERROR_REPEAT_INITIALIZE, .. }) => Ok(acl),
            Err(Error::Acl { code: sys::ACL_ERROR_LINK_STUB, .. }) => Err(Error::Unavailable {
                what: "the Ascend runtime",
                tried: format!("{} (a stub for linking, which only returns 100039)", acl.name),
                remedy: remedy(sys::ACL_ERROR_LINK_STUB),
            }),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the functions are the simulator's, in this process.
    pub fn simulated(&self) -> bool {
        self.library.is_none()
    }

    /// Returns the library's name or path, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the functions, for calls that no type here makes.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Returns the names of the functions of [`OPTIONAL`] that this runtime lacks.
    pub fn absent(&self) -> impl Iterator<Item = &'static str> {
        functions::absent(&self.functions)
    }

    /// Returns the chip's name, such as `Ascend910B3`; empty if the runtime does not return one.
    pub fn soc_name(&self) -> String {
        // SAFETY: the function has no arguments and returns null or a string that is valid until
        // the process ends.
        let name = self.functions.aclrtGetSocName.map(|name| unsafe { text(name()) });
        name.unwrap_or_default()
    }

    /// Turns a code into a result. The runtime's message for this thread is copied at once, because
    /// the next call overwrites it.
    fn check(&self, call: &'static str, code: c_int) -> Result<()> {
        if code == sys::ACL_SUCCESS {
            return Ok(());
        }
        // SAFETY: the function has no arguments and returns null or a string that stays valid until
        // this thread's next call.
        let text = self.functions.aclGetRecentErrMsg.map(|message| unsafe { text(message()) });
        let text = text.unwrap_or_default().trim().to_owned();
        Err(Error::Acl { call, code, text, remedy: remedy(code) })
    }

    fn missing(&self, call: &'static str) -> Error {
        invalid!("function" is call, but "{} does not have it", self.name;
            "use a newer CANN, or do without this feature")
    }
}

impl fmt::Debug for Acl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acl").field("name", &self.name).finish()
    }
}

/// Copies a string of the runtime; empty if it is null.
///
/// # Safety
/// `text` is null or a string that is valid during the call.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: `text` is not null, hence a valid string (`# Safety`).
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn remedy(code: c_int) -> &'static str {
    match code {
        sys::ACL_ERROR_LINK_STUB => "put the runtime's lib64, not devlib, on the library path",
        sys::ACL_ERROR_RT_CONTEXT_NULL => "set a device on this thread first",
        sys::ACL_ERROR_RT_STREAM_CONTEXT => "pass a stream of the context that the engine uses",
        sys::ACL_ERROR_RT_INVALID_DEVICEID => "choose a device that exists",
        sys::ACL_ERROR_RT_FEATURE_NOT_SUPPORT => "update the driver (24.1 or newer) and CANN",
        sys::ACL_ERROR_RT_MEMORY_ALLOCATION => {
            "ask for less memory; one registration has a limit, so pass smaller chunks"
        }
        sys::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT => {
            "the device did not finish in time; destroy the engine"
        }
        107_000..=107_099 | 100_000..=100_099 | 148_000..=148_099 => {
            "a defect of the caller or of this library: report it with the call"
        }
        507_000..=507_999 => "the device failed; destroy the engine, and see the device's log",
        _ => "see the runtime's log (ASCEND_SLOG_PRINT_TO_STDOUT=1)",
    }
}

#[cfg(test)]
mod tests;
