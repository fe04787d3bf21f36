//! Device memory, pinned host memory, and copies between them.

use std::ffi::c_void;

use super::super::{Acl, sys};
use super::call;
use crate::Result;

/// The kind of a copy (`aclrtMemcpyKind`). The runtime refuses copies from host to host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// Host to device.
    HostToDevice,
    /// Device to host.
    DeviceToHost,
    /// Device to device.
    DeviceToDevice,
}

impl CopyKind {
    fn code(self) -> i32 {
        match self {
            Self::HostToDevice => sys::ACL_MEMCPY_HOST_TO_DEVICE,
            Self::DeviceToHost => sys::ACL_MEMCPY_DEVICE_TO_HOST,
            Self::DeviceToDevice => sys::ACL_MEMCPY_DEVICE_TO_DEVICE,
        }
    }
}

/// Allocates device memory, in hugepages if there are any; it is not zeroed.
pub fn malloc(acl: &Acl, bytes: usize) -> Result<*mut c_void> {
    let mut at = core::ptr::null_mut();
    call!(acl, aclrtMalloc(&mut at, bytes, sys::ACL_MEM_MALLOC_HUGE_FIRST))?;
    Ok(at)
}

/// Frees device memory, without waiting for work that uses it.
///
/// # Safety
/// `at` must come from [`malloc`], and no work may use it any more.
pub unsafe fn free(acl: &Acl, at: *mut c_void) -> Result<()> {
    call!(acl, aclrtFree(at))
}

/// Allocates pinned host memory; it is not zeroed.
pub fn malloc_host(acl: &Acl, bytes: usize) -> Result<*mut c_void> {
    let mut at = core::ptr::null_mut();
    call!(acl, aclrtMallocHost(&mut at, bytes))?;
    Ok(at)
}

/// Frees pinned host memory.
///
/// # Safety
/// `at` must come from [`malloc_host`], and no work may use it any more.
pub unsafe fn free_host(acl: &Acl, at: *mut c_void) -> Result<()> {
    call!(acl, aclrtFreeHost(at))
}

/// Copies `bytes` bytes and returns when the copy is done. It does not wait for streams.
///
/// # Safety
/// Both ranges must be valid for `bytes` bytes, and no work may write them meanwhile.
pub unsafe fn copy(
    acl: &Acl,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: CopyKind,
) -> Result<()> {
    call!(acl, aclrtMemcpy(to, bytes, from, bytes, kind.code()))
}

/// Puts a copy into a stream. With pageable host memory the call returns only after the copy.
///
/// # Safety
/// Both ranges must be valid for `bytes` bytes until the stream has done the copy.
pub unsafe fn copy_async(
    acl: &Acl,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: CopyKind,
    stream: sys::aclrtStream,
) -> Result<()> {
    call!(acl, aclrtMemcpyAsync(to, bytes, from, bytes, kind.code(), stream))
}

/// Sets `bytes` bytes of device memory to `value` and returns when that is done.
///
/// # Safety
/// The range must be device memory that no work uses meanwhile.
pub unsafe fn set(acl: &Acl, at: *mut c_void, value: u8, bytes: usize) -> Result<()> {
    call!(acl, aclrtMemset(at, bytes, i32::from(value), bytes))
}
