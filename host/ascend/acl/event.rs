//! Events.

use std::sync::Arc;

use super::{Context, call, sys};
use crate::Result;
use crate::device_arrays::RawStream;

/// An event, which streams record and wait for.
#[derive(Debug)]
pub struct Event {
    context: Arc<Context>,
    handle: sys::aclrtEvent,
}

// SAFETY: the handle belongs to the context, not to a thread; threads that use it make the context
// current.
unsafe impl Send for Event {}
// SAFETY: as for Send; the runtime orders concurrent records.
unsafe impl Sync for Event {}

impl Event {
    /// Creates an event that streams can wait for.
    pub fn sync(context: &Arc<Context>) -> Result<Self> {
        Self::new(context, sys::ACL_EVENT_SYNC)
    }

    /// Creates an event that measures time.
    pub fn timing(context: &Arc<Context>) -> Result<Self> {
        Self::new(context, sys::ACL_EVENT_TIME_LINE)
    }

    fn new(context: &Arc<Context>, uses: i32) -> Result<Self> {
        let _current = context.bind()?;
        let (mut handle, uses) = (core::ptr::null_mut(), uses.unsigned_abs());
        // SAFETY: the function writes a handle to `handle`.
        unsafe { call!(context.acl(), aclrtCreateEventExWithFlag(&mut handle, uses))? };
        Ok(Self { context: Arc::clone(context), handle })
    }

    pub(super) fn handle(&self) -> sys::aclrtEvent {
        self.handle
    }

    /// Records the event after the stream's work so far.
    pub fn record(&self, stream: RawStream) -> Result<()> {
        let _current = self.context.bind()?;
        // SAFETY: this value owns the event; the stream is alive by the contract of
        // `RawStream::new`.
        unsafe { call!(self.context.acl(), aclrtRecordEvent(self.handle, stream.handle())) }
    }

    /// Returns the milliseconds from `start` to this event.
    ///
    /// # Errors
    /// If an event does not measure time, or its record has not completed.
    pub fn since(&self, start: &Self) -> Result<f32> {
        let (_current, mut ms) = (self.context.bind()?, 0.0);
        // SAFETY: both values own their events, and the function writes a number to `ms`.
        unsafe {
            call!(self.context.acl(), aclrtEventElapsedTime(&mut ms, start.handle, self.handle))?
        };
        Ok(ms)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: this value owns the event, and it is not used after a release that succeeds.
        self.context.release(|acl| unsafe { call!(acl, aclrtDestroyEvent(self.handle)) });
    }
}
