//! Events in streams.

use super::super::{Acl, sys};
use super::call;
use crate::Result;

/// Creates an event with the flags `uses`, bits of [`sys::ACL_EVENT_SYNC`] and
/// [`sys::ACL_EVENT_TIME_LINE`].
pub fn create(acl: &Acl, uses: i32) -> Result<sys::aclrtEvent> {
    let mut event = core::ptr::null_mut();
    call!(acl, aclrtCreateEventExWithFlag(&mut event, uses.unsigned_abs()))?;
    Ok(event)
}

/// Destroys an event.
///
/// # Safety
/// `event` must be live and is not used afterwards.
pub unsafe fn destroy(acl: &Acl, event: sys::aclrtEvent) -> Result<()> {
    call!(acl, aclrtDestroyEvent(event))
}

/// Records an event after the stream's work so far.
///
/// # Safety
/// `event` and `stream` must be live.
pub unsafe fn record(acl: &Acl, event: sys::aclrtEvent, stream: sys::aclrtStream) -> Result<()> {
    call!(acl, aclrtRecordEvent(event, stream))
}

/// Waits for the latest record of an event.
///
/// # Safety
/// `event` must be live.
pub unsafe fn synchronize(acl: &Acl, event: sys::aclrtEvent) -> Result<()> {
    call!(acl, aclrtSynchronizeEvent(event))
}

/// Returns the milliseconds between two events that were recorded and have completed.
///
/// # Safety
/// `start` and `end` must be live.
pub unsafe fn elapsed(acl: &Acl, start: sys::aclrtEvent, end: sys::aclrtEvent) -> Result<f32> {
    let mut ms = 0.0;
    call!(acl, aclrtEventElapsedTime(&mut ms, start, end))?;
    Ok(ms)
}
