//! The runtime of this process.

use std::ffi::CStr;
use std::ptr;

use super::super::{Acl, sys};
use super::call;
use crate::{Error, Result};

/// Initialises the runtime. That somebody did so before is no error.
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

/// The chip's name, such as `Ascend910B3`; empty where the runtime has none to tell.
pub fn soc_name(acl: &Acl) -> String {
    // SAFETY: it takes nothing and returns null or a string that lives as long as the process.
    let name = acl.functions.aclrtGetSocName.map(|name| unsafe { name() });
    name.filter(|name| !name.is_null()).map_or_else(String::new, |name| {
        // SAFETY: as above.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    })
}
