//! Streams.

use super::super::{Acl, sys};
use super::call;
use crate::{Error, Result};

/// Returns the number of vector cores that the stream's kernels may have: the limit of the stream,
/// else of the process, else the device's number. `None` if the runtime has no limits (before CANN
/// 8.3, or with an older driver).
///
/// # Safety
/// `stream` must be a live stream.
pub unsafe fn vector_cores(acl: &Acl, stream: sys::aclrtStream) -> Result<Option<usize>> {
    if acl.functions.aclrtGetStreamResLimit.is_none() {
        return Ok(None);
    }
    let mut n = 0;
    match call!(acl, aclrtGetStreamResLimit(stream, sys::ACL_RT_DEV_RES_VECTOR_CORE, &mut n)) {
        // A limit of 0 is ignored, because no kernel could run.
        Ok(()) => Ok(Some(n as usize).filter(|&n| n > 0)),
        Err(Error::Acl { code: sys::ACL_ERROR_RT_FEATURE_NOT_SUPPORT, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates a stream in the current context.
pub fn create(acl: &Acl) -> Result<sys::aclrtStream> {
    let mut stream = core::ptr::null_mut();
    call!(acl, aclrtCreateStream(&mut stream))?;
    Ok(stream)
}

/// Waits for a stream's work and destroys the stream.
///
/// # Safety
/// `stream` must be live and is not used afterwards.
pub unsafe fn destroy(acl: &Acl, stream: sys::aclrtStream) -> Result<()> {
    call!(acl, aclrtDestroyStream(stream))
}

/// Destroys a stream and drops its work.
///
/// # Safety
/// As for [`destroy`].
pub unsafe fn destroy_force(acl: &Acl, stream: sys::aclrtStream) -> Result<()> {
    call!(acl, aclrtDestroyStreamForce(stream))
}

/// Waits for a stream's work, at most `timeout_ms` milliseconds; -1 means no limit.
///
/// # Safety
/// `stream` must be a live stream.
pub unsafe fn synchronize(acl: &Acl, stream: sys::aclrtStream, timeout_ms: i32) -> Result<()> {
    call!(acl, aclrtSynchronizeStreamWithTimeout(stream, timeout_ms))
}

/// Returns whether a stream's work is done.
///
/// # Safety
/// `stream` must be a live stream.
pub unsafe fn done(acl: &Acl, stream: sys::aclrtStream) -> Result<bool> {
    let mut status = 0;
    call!(acl, aclrtStreamQuery(stream, &mut status))?;
    Ok(status == sys::ACL_STREAM_STATUS_COMPLETE)
}

/// Makes later work of the stream wait for the event's latest record.
///
/// # Safety
/// `stream` and `event` must be live.
pub unsafe fn wait_event(
    acl: &Acl,
    stream: sys::aclrtStream,
    event: sys::aclrtEvent,
) -> Result<()> {
    call!(acl, aclrtStreamWaitEvent(stream, event))
}
