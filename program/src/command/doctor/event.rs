//! Events, which time the work of a stream.

use std::ptr::null_mut;
use std::sync::Arc;

use avsg::Result;
use avsg::ascend::acl::{Acl, Context, Owned, Stream, sys};

/// An event, which measures the time at which a stream records it.
pub struct Event {
    context: Arc<Context>,
    handle: Owned,
}

impl Event {
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        let _current = context.bind()?;
        let (mut handle, uses) = (null_mut(), sys::ACL_EVENT_TIME_LINE.unsigned_abs());
        // SAFETY: the function writes a handle to `handle`.
        unsafe { context.acl().aclrtCreateEventExWithFlag(&mut handle, uses)? };
        // SAFETY: the event was created above, and only `Owned` destroys it.
        let handle = unsafe { Owned::new(context, handle, Acl::aclrtDestroyEvent) };
        Ok(Self { context: Arc::clone(context), handle })
    }

    /// Records the event after the stream's work so far.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        let (_current, acl) = (self.context.bind()?, self.context.acl());
        // SAFETY: event and stream are owned by their values.
        unsafe { acl.aclrtRecordEvent(self.handle.at(), stream.raw().handle()) }
    }

    /// Returns the milliseconds from `start` to this event.
    ///
    /// # Errors
    /// If a record has not completed.
    pub fn since(&self, start: &Self) -> Result<f32> {
        let (_current, acl, mut ms) = (self.context.bind()?, self.context.acl(), 0.0);
        // SAFETY: both values own their events, and the function writes a number to `ms`.
        unsafe { acl.aclrtEventElapsedTime(&mut ms, start.handle.at(), self.handle.at())? };
        Ok(ms)
    }
}
