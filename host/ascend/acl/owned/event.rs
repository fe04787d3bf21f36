//! Marks in streams.

use std::sync::Arc;

use super::super::{api, sys};
use super::{Context, RawStream};
use crate::Result;

/// An event.
#[derive(Debug)]
pub struct Event {
    context: Arc<Context>,
    handle: sys::aclrtEvent,
}

// SAFETY: a handle of the context, used by threads that make the context current.
unsafe impl Send for Event {}
// SAFETY: as for Send; the runtime orders concurrent records.
unsafe impl Sync for Event {}

impl Event {
    /// One that other streams can wait for.
    ///
    /// # Errors
    /// If the runtime refuses.
    pub fn sync(context: &Arc<Context>) -> Result<Self> {
        Self::new(context, sys::ACL_EVENT_SYNC)
    }

    /// One that tells times.
    ///
    /// # Errors
    /// If the runtime refuses.
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

    /// Puts it behind the stream's work so far.
    ///
    /// # Errors
    /// If the runtime refuses.
    pub fn record(&self, stream: RawStream) -> Result<()> {
        let _current = self.context.bind()?;
        // SAFETY: the event is ours; the stream is alive by `RawStream::new`.
        unsafe { api::event::record(self.context.acl(), self.handle, stream.handle()) }
    }

    /// Waits for its latest record.
    ///
    /// # Errors
    /// If the work before it failed.
    pub fn synchronize(&self) -> Result<()> {
        let _current = self.context.bind()?;
        // SAFETY: the event is ours and alive.
        unsafe { api::event::synchronize(self.context.acl(), self.handle) }
    }

    /// Milliseconds from another one to this.
    ///
    /// # Errors
    /// If they do not tell times, or have not happened.
    pub fn since(&self, start: &Self) -> Result<f32> {
        let _current = self.context.bind()?;
        // SAFETY: both are ours and alive.
        unsafe { api::event::elapsed(self.context.acl(), start.handle, self.handle) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: it is ours, and this is its last use unless it fails.
        self.context.release(|acl| unsafe { api::event::destroy(acl, self.handle) });
    }
}
