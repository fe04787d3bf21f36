//! Captured work: recorded once, replayed without the host.

use super::super::{Acl, sys};
use super::call;
use crate::Result;

/// From now on the stream's work is recorded instead of run. Calls that would wait are refused on
/// this thread only.
///
/// # Safety
/// The stream is alive.
pub unsafe fn begin(acl: &Acl, stream: sys::aclrtStream) -> Result<()> {
    call!(acl, aclmdlRICaptureBegin(stream, sys::ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL))
}

/// Ends the recording, on the thread that began it.
///
/// # Safety
/// The stream is alive.
pub unsafe fn end(acl: &Acl, stream: sys::aclrtStream) -> Result<sys::aclmdlRI> {
    let mut graph = core::ptr::null_mut();
    call!(acl, aclmdlRICaptureEnd(stream, &mut graph))?;
    Ok(graph)
}

/// Whether a stream is being recorded. A runtime that cannot say so is taken at its word that it
/// is not.
///
/// # Safety
/// The stream is alive.
pub unsafe fn under_way(acl: &Acl, stream: sys::aclrtStream) -> Result<bool> {
    if acl.functions.aclmdlRICaptureGetInfo.is_none() {
        return Ok(false);
    }
    let (mut status, mut graph) = (sys::ACL_MODEL_RI_CAPTURE_STATUS_NONE, core::ptr::null_mut());
    call!(acl, aclmdlRICaptureGetInfo(stream, &mut status, &mut graph))?;
    Ok(status != sys::ACL_MODEL_RI_CAPTURE_STATUS_NONE)
}

/// Puts the recorded work into a stream.
///
/// # Safety
/// Both are alive, and so is all that the recorded work uses.
pub unsafe fn replay(acl: &Acl, graph: sys::aclmdlRI, stream: sys::aclrtStream) -> Result<()> {
    call!(acl, aclmdlRIExecuteAsync(graph, stream))
}

/// Destroys it.
///
/// # Safety
/// It is alive, no replay is under way, and this is its last use.
pub unsafe fn destroy(acl: &Acl, graph: sys::aclmdlRI) -> Result<()> {
    call!(acl, aclmdlRIDestroy(graph))
}
