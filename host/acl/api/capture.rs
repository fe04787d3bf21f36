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
