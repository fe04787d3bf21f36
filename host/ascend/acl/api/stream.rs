//! Streams: queues of work.

use super::super::{Acl, sys};
use super::call;
use crate::{Error, Result};

/// Vector cores that the stream's kernels may have: its own limit, else the process's, else the
/// device's. None where the runtime has no limits (before CANN 8.3, or without the driver's part).
///
/// # Safety
/// The stream is alive.
pub unsafe fn vector_cores(acl: &Acl, stream: sys::aclrtStream) -> Result<Option<usize>> {
    if acl.functions.aclrtGetStreamResLimit.is_none() {
        return Ok(None);
    }
    let mut n = 0;
    match call!(acl, aclrtGetStreamResLimit(stream, sys::ACL_RT_DEV_RES_VECTOR_CORE, &mut n)) {
        // Nothing could run on none.
        Ok(()) => Ok(Some(n as usize).filter(|&n| n > 0)),
        Err(Error::Acl { code: sys::ACL_ERROR_RT_FEATURE_NOT_SUPPORT, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A stream of the current context.
pub fn create(acl: &Acl) -> Result<sys::aclrtStream> {
    let mut stream = core::ptr::null_mut();
    call!(acl, aclrtCreateStream(&mut stream))?;
    Ok(stream)
}

/// Waits for its work and destroys it.
///
/// # Safety
/// The stream is alive, and this is its last use.
pub unsafe fn destroy(acl: &Acl, stream: sys::aclrtStream) -> Result<()> {
    call!(acl, aclrtDestroyStream(stream))
}

/// Drops its work and destroys it.
///
/// # Safety
/// As for [`destroy`].
pub unsafe fn destroy_force(acl: &Acl, stream: sys::aclrtStream) -> Result<()> {
    call!(acl, aclrtDestroyStreamForce(stream))
}

/// Waits for its work, so many milliseconds at most; -1 waits for ever.
///
/// # Safety
/// The stream is alive.
pub unsafe fn synchronize(acl: &Acl, stream: sys::aclrtStream, timeout_ms: i32) -> Result<()> {
    call!(acl, aclrtSynchronizeStreamWithTimeout(stream, timeout_ms))
}

/// Whether its work is done.
///
/// # Safety
/// The stream is alive.
pub unsafe fn done(acl: &Acl, stream: sys::aclrtStream) -> Result<bool> {
    let mut status = 0;
    call!(acl, aclrtStreamQuery(stream, &mut status))?;
    Ok(status == sys::ACL_STREAM_STATUS_COMPLETE)
}

/// Lets later work of the stream wait for the event's latest record.
///
/// # Safety
/// Both are alive.
pub unsafe fn wait_event(
    acl: &Acl,
    stream: sys::aclrtStream,
    event: sys::aclrtEvent,
) -> Result<()> {
    call!(acl, aclrtStreamWaitEvent(stream, event))
}
