//! Events: marks in streams.

use super::super::{Acl, sys};
use super::call;
use crate::Result;

/// An event for these uses: bits [`sys::ACL_EVENT_SYNC`], [`sys::ACL_EVENT_TIME_LINE`].
pub fn create(acl: &Acl, uses: i32) -> Result<sys::aclrtEvent> {
    let mut event = core::ptr::null_mut();
    call!(acl, aclrtCreateEventExWithFlag(&mut event, uses.unsigned_abs()))?;
    Ok(event)
}

/// Destroys it.
///
/// # Safety
/// The event is alive, and this is its last use.
pub unsafe fn destroy(acl: &Acl, event: sys::aclrtEvent) -> Result<()> {
    call!(acl, aclrtDestroyEvent(event))
}

/// Puts it behind the stream's work so far.
///
/// # Safety
/// Both are alive.
pub unsafe fn record(acl: &Acl, event: sys::aclrtEvent, stream: sys::aclrtStream) -> Result<()> {
    call!(acl, aclrtRecordEvent(event, stream))
}

/// Waits for its latest record.
///
/// # Safety
/// The event is alive.
pub unsafe fn synchronize(acl: &Acl, event: sys::aclrtEvent) -> Result<()> {
    call!(acl, aclrtSynchronizeEvent(event))
}

/// Milliseconds between two that were recorded on one stream and have happened.
///
/// # Safety
/// Both are alive.
pub unsafe fn elapsed(acl: &Acl, start: sys::aclrtEvent, end: sys::aclrtEvent) -> Result<f32> {
    let mut ms = 0.0;
    call!(acl, aclrtEventElapsedTime(&mut ms, start, end))?;
    Ok(ms)
}
