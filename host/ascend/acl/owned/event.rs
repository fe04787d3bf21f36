//! Events.

use std::sync::Arc;

use super::super::{api, sys};
use super::{Context, RawStream};
use crate::Result;

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
        let handle = api::event::create(context.acl(), uses)?;
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
        unsafe { api::event::record(self.context.acl(), self.handle, stream.handle()) }
    }

    /// Waits for the latest record of the event.
    ///
    /// # Errors
    /// If work before the record failed.
    pub fn synchronize(&self) -> Result<()> {
        let _current = self.context.bind()?;
        // SAFETY: this value owns the event.
        unsafe { api::event::synchronize(self.context.acl(), self.handle) }
    }

    /// Returns the milliseconds from `start` to this event.
    ///
    /// # Errors
    /// If an event does not measure time, or its record has not completed.
    pub fn since(&self, start: &Self) -> Result<f32> {
        let _current = self.context.bind()?;
        // SAFETY: both events are owned by their values.
        unsafe { api::event::elapsed(self.context.acl(), start.handle, self.handle) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: this value owns the event, and it is not used after a release that succeeds.
        self.context.release(|acl| unsafe { api::event::destroy(acl, self.handle) });
    }
}
