//! Memory: the device's, and the host's that it copies from without a detour.

use std::ffi::c_void;

use super::super::{Acl, sys};
use super::call;
use crate::Result;

/// Which way a copy goes. Host to host is refused by the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Host to device.
    ToDevice,
    /// Device to host.
    ToHost,
    /// Device to device.
    Within,
}

impl Way {
    fn kind(self) -> i32 {
        match self {
            Self::ToDevice => sys::ACL_MEMCPY_HOST_TO_DEVICE,
            Self::ToHost => sys::ACL_MEMCPY_DEVICE_TO_HOST,
            Self::Within => sys::ACL_MEMCPY_DEVICE_TO_DEVICE,
        }
    }
}

/// Device memory, in hugepages where they are; not zeroed.
pub fn malloc(acl: &Acl, bytes: usize) -> Result<*mut c_void> {
    let mut at = core::ptr::null_mut();
    call!(acl, aclrtMalloc(&mut at, bytes, sys::ACL_MEM_MALLOC_HUGE_FIRST))?;
    Ok(at)
}

/// Gives device memory back. It does not wait for work that uses it.
///
/// # Safety
/// It came from [`malloc`], and no work uses it any more.
pub unsafe fn free(acl: &Acl, at: *mut c_void) -> Result<()> {
    call!(acl, aclrtFree(at))
}

/// Pinned host memory; not zeroed.
pub fn malloc_host(acl: &Acl, bytes: usize) -> Result<*mut c_void> {
    let mut at = core::ptr::null_mut();
    call!(acl, aclrtMallocHost(&mut at, bytes))?;
    Ok(at)
}

/// Gives pinned memory back.
///
/// # Safety
/// It came from [`malloc_host`], and no work uses it any more.
pub unsafe fn free_host(acl: &Acl, at: *mut c_void) -> Result<()> {
    call!(acl, aclrtFreeHost(at))
}

/// Copies, and returns when it is done. Streams are not waited for.
///
/// # Safety
/// Both ranges are valid for `bytes`, and no work writes them meanwhile.
pub unsafe fn copy(
    acl: &Acl,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    way: Way,
) -> Result<()> {
    call!(acl, aclrtMemcpy(to, bytes, from, bytes, way.kind()))
}

/// Puts a copy into a stream. With pageable host memory it returns only after the copy.
///
/// # Safety
/// Both ranges are valid for `bytes` until the stream has done the copy.
pub unsafe fn copy_async(
    acl: &Acl,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    way: Way,
    stream: sys::aclrtStream,
) -> Result<()> {
    call!(acl, aclrtMemcpyAsync(to, bytes, from, bytes, way.kind(), stream))
}

/// Sets bytes of device memory, and returns when it is done.
///
/// # Safety
/// The range is device memory, and no work uses it meanwhile.
pub unsafe fn set(acl: &Acl, at: *mut c_void, value: u8, bytes: usize) -> Result<()> {
    call!(acl, aclrtMemset(at, bytes, i32::from(value), bytes))
}
