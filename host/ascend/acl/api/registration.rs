//! Registration of host memory, which kernels then access by device addresses.

use std::ffi::c_void;

use super::super::{Acl, sys};
use super::call;
use crate::Result;

/// Registers whole pages for the current context's device and returns their device address. Only
/// kernels can use that address; the runtime's copies refuse it.
///
/// # Safety
/// The range must stay mapped until [`unregister`].
pub unsafe fn register(acl: &Acl, at: *mut c_void, bytes: usize) -> Result<*mut c_void> {
    let mut device = core::ptr::null_mut();
    let kind = sys::ACL_HOST_REGISTER_MAPPED;
    call!(acl, aclrtHostRegister(at, bytes as u64, kind, &mut device))?;
    Ok(device)
}

/// Unregisters a range.
///
/// # Safety
/// `at` must be a registered range, and no kernel may use it any more.
pub unsafe fn unregister(acl: &Acl, at: *mut c_void) -> Result<()> {
    call!(acl, aclrtHostUnregister(at))
}
