//! The Ascend Computing Language (ACL), found at run time.
//!
//! There are three layers: [`sys`] has the runtime's types and values, generated from `acl.h`, and `functions` the
//! list of its functions; `result` makes a checked form of each function from the list, a method of [`Acl`] with the same
//! name; the other types of this module own handles of the runtime and release them on drop. Every
//! method that calls the runtime returns the error of the call, for example of an allocation that is too
//! large or of work that failed; `# Errors` lists further errors only. Nothing links against the
//! runtime, so a build needs no CANN, and a machine without it gets an error that lists the libraries
//! that were tried.
//!
//! A `Drop` cannot return an error, so it stores the error in the [`Context`], where
//! [`Context::take_error`] or [`Context::finish`] returns it. Calls on other objects of the context
//! do not, because they have not failed. A release that failed is tried once more, because a failed
//! call of the runtime has changed nothing; both errors are stored.

mod context;
mod functions;
mod kernel;
mod memory;
mod result;
mod source;
mod stream;
#[expect(missing_docs, reason = "generated; the vendor's pages describe them")]
#[expect(non_camel_case_types, non_snake_case, reason = "the runtime's own names")]
#[rustfmt::skip]
pub mod sys;

pub use context::{Context, Current, Owned, Release};
pub use kernel::{Args, Binary};
pub(crate) use memory::Mirrored;
pub use memory::{DeviceMemory, MemorySource, Registration};
pub use result::{Acl, FUNCTIONS, Need};
pub use source::{Resolve, Source};
pub use stream::{Graph, Stream};

use crate::{Error, Result};

impl Acl {
    /// Finds the runtime and initialises it (`aclInit`). It is no error if the process has
    /// initialised it before, for example in a framework. It is never finalised.
    ///
    /// # Errors
    /// If no library is found, or the library is the link stub or older than CANN 8.1.
    pub fn open(source: &Source) -> Result<Self> {
        let acl = source::open(source)?;
        // SAFETY: null selects the default configuration.
        match unsafe { acl.aclInit(core::ptr::null()) } {
            Ok(()) | Err(Error::Acl { code: sys::ACL_ERROR_REPEAT_INITIALIZE, .. }) => Ok(acl),
            Err(Error::Acl { code: sys::ACL_ERROR_LINK_STUB, .. }) => Err(Error::Unavailable {
                what: "the Ascend runtime",
                tried: format!("{} (a stub for linking, which only returns 100039)", acl.name),
                remedy: result::remedy(sys::ACL_ERROR_LINK_STUB),
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

    /// Returns the chip's name, such as `Ascend910B3`; empty if the runtime does not return one.
    pub fn soc_name(&self) -> String {
        // SAFETY: the name is valid until the process ends.
        unsafe { result::text(self.functions.aclrtGetSocName) }
    }
}

#[cfg(test)]
mod tests;
