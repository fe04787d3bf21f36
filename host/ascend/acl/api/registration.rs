//! Host memory that kernels read and write by addresses of the device's own.

use std::ffi::c_void;

use super::super::{Acl, sys};
use super::call;
use crate::Result;

/// Registers whole pages for the current context's device and returns where its kernels see them.
/// That address is for kernels only: no copy of the runtime takes it.
///
/// # Safety
/// The range is mapped until [`unregister`].
pub unsafe fn register(acl: &Acl, at: *mut c_void, bytes: usize) -> Result<*mut c_void> {
    let mut device = core::ptr::null_mut();
    let kind = sys::ACL_HOST_REGISTER_MAPPED;
    call!(acl, aclrtHostRegister(at, bytes as u64, kind, &mut device))?;
    Ok(device)
}

/// Undoes [`register`].
///
/// # Safety
/// It was registered, and no kernel uses it any more.
pub unsafe fn unregister(acl: &Acl, at: *mut c_void) -> Result<()> {
    call!(acl, aclrtHostUnregister(at))
}
