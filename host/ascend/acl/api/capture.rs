//! Capture of a stream's work as a graph (`aclmdlRI`), and its replay.

use super::super::{Acl, sys};
use super::call;
use crate::Result;

/// Begins a capture: work that is put into the stream is recorded instead of run. The capture mode
/// is thread-local, so synchronizing calls are refused on this thread only.
///
/// # Safety
/// `stream` must be a live stream of the current context.
pub unsafe fn begin(acl: &Acl, stream: sys::aclrtStream) -> Result<()> {
    call!(acl, aclmdlRICaptureBegin(stream, sys::ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL))
}

/// Ends the capture, on the thread that began it, and returns the graph.
///
/// # Safety
/// `stream` must be a live stream of the current context.
pub unsafe fn end(acl: &Acl, stream: sys::aclrtStream) -> Result<sys::aclmdlRI> {
    let mut graph = core::ptr::null_mut();
    call!(acl, aclmdlRICaptureEnd(stream, &mut graph))?;
    Ok(graph)
}

/// Returns whether the stream is being captured; false if the runtime lacks
/// `aclmdlRICaptureGetInfo`.
///
/// # Safety
/// `stream` must be a live stream of the current context.
pub unsafe fn is_capturing(acl: &Acl, stream: sys::aclrtStream) -> Result<bool> {
    if acl.functions.aclmdlRICaptureGetInfo.is_none() {
        return Ok(false);
    }
    let (mut status, mut graph) = (sys::ACL_MODEL_RI_CAPTURE_STATUS_NONE, core::ptr::null_mut());
    call!(acl, aclmdlRICaptureGetInfo(stream, &mut status, &mut graph))?;
    Ok(status != sys::ACL_MODEL_RI_CAPTURE_STATUS_NONE)
}

/// Puts the work of a graph into a stream.
///
/// # Safety
/// Graph and stream must be live, and all memory that the captured work uses must be valid until
/// the replay is done.
pub unsafe fn replay(acl: &Acl, graph: sys::aclmdlRI, stream: sys::aclrtStream) -> Result<()> {
    call!(acl, aclmdlRIExecuteAsync(graph, stream))
}

/// Destroys a graph.
///
/// # Safety
/// `graph` must be live and is not used afterwards, and no replay of it may be in progress.
pub unsafe fn destroy(acl: &Acl, graph: sys::aclmdlRI) -> Result<()> {
    call!(acl, aclmdlRIDestroy(graph))
}
