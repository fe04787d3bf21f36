//! The initialisation of the runtime in this process.

use std::ffi::CStr;
use std::ptr;

use super::super::{Acl, sys};
use super::call;
use crate::{Error, Result};

/// Initialises the runtime. It is no error if the process has initialised it before.
pub fn init(acl: &Acl) -> Result<()> {
    match call!(acl, aclInit(ptr::null())) {
        Err(Error::Acl { code: sys::ACL_ERROR_REPEAT_INITIALIZE, .. }) => Ok(()),
        Err(Error::Acl { code: sys::ACL_ERROR_LINK_STUB, .. }) => Err(Error::Unavailable {
            what: "the Ascend runtime",
            tried: format!("{} (a stub for linking, which only returns 100039)", acl.name()),
            remedy: "put the runtime's lib64, not devlib, on the library path",
        }),
        other => other,
    }
}

/// Returns the chip's name, such as `Ascend910B3`; empty if the runtime does not return one.
pub fn soc_name(acl: &Acl) -> String {
    // SAFETY: the function has no arguments and returns null or a string that is valid until the
    // process ends.
    let name = acl.functions.aclrtGetSocName.map(|name| unsafe { name() });
    name.filter(|name| !name.is_null()).map_or_else(String::new, |name| {
        // SAFETY: `name` is not null and valid until the process ends.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    })
}
