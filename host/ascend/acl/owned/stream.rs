//! Streams of ours, of the caller, and captured work.

use std::sync::Arc;

use super::super::{api, sys};
use super::{Context, Event};
use crate::Result;
use crate::queued::RawStream;

/// A stream of ours.
#[derive(Debug)]
pub struct Stream {
    context: Arc<Context>,
    raw: RawStream,
}

impl Stream {
    /// A new one.
    ///
    /// # Errors
    /// If the runtime refuses.
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        let _current = context.bind()?;
        let handle = api::stream::create(context.acl())?;
        // SAFETY: the stream was made just now, and this value keeps it.
        let raw = unsafe { RawStream::new(handle) };
        Ok(Self { context: Arc::clone(context), raw })
    }

    /// What calls take.
    pub fn raw(&self) -> RawStream {
        self.raw
    }

    /// Waits for all its work.
    ///
    /// # Errors
    /// If some work failed, or the time is over.
    pub fn synchronize(&self, timeout_ms: i32) -> Result<()> {
        let _current = self.context.bind()?;
        // SAFETY: the stream is ours and alive.
        unsafe { api::stream::synchronize(self.context.acl(), self.raw.handle(), timeout_ms) }
    }

    /// Whether all its work is done.
    ///
    /// # Errors
    /// If some work failed.
    pub fn done(&self) -> Result<bool> {
        let _current = self.context.bind()?;
        // SAFETY: the stream is ours and alive.
        unsafe { api::stream::done(self.context.acl(), self.raw.handle()) }
    }

    /// Lets its later work wait for an event.
    ///
    /// # Errors
    /// If the runtime refuses.
    pub fn wait(&self, event: &Event) -> Result<()> {
        let _current = self.context.bind()?;
        // SAFETY: both are owned and alive.
        unsafe { api::stream::wait_event(self.context.acl(), self.raw.handle(), event.handle()) }
    }

    /// Records what `work` puts into it, instead of running it.
    ///
    /// # Errors
    /// What `work` returned, or the runtime's refusal; nothing is left recorded then.
    pub fn capture(&self, work: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let _current = self.context.bind()?;
        let acl = self.context.acl();
        // SAFETY: the stream is ours and alive, here and below.
        unsafe { api::capture::begin(acl, self.raw.handle())? };
        let done = work();
        // Ended in any case, or the stream would stay unusable.
        // SAFETY: as above.
        let end = || unsafe { api::capture::end(acl, self.raw.handle()) };
        let graph = |handle| Graph { context: Arc::clone(&self.context), handle };
        let graph = end().map(graph).inspect_err(|_| {
            // As every release, tried once more; what it recorded is thrown away.
            let _ = end().map(graph);
        });
        done.and(graph)
    }

    /// Puts recorded work into it.
    ///
    /// # Errors
    /// If the runtime refuses.
    pub fn replay(&self, graph: &Graph) -> Result<()> {
        let _current = self.context.bind()?;
        // SAFETY: the stream and the graph are owned and alive; that its memory is as well, the
        // recorder of the work promised by its own contract.
        unsafe { api::capture::replay(self.context.acl(), graph.handle, self.raw.handle()) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let destroy = |force| {
            let _current = self.context.enter()?;
            // SAFETY: the stream is ours, and this is its last use unless it fails.
            unsafe {
                if force {
                    api::stream::destroy_force(self.context.acl(), self.raw.handle())
                } else {
                    api::stream::destroy(self.context.acl(), self.raw.handle())
                }
            }
        };
        // Work that never ends is dropped with force; an ordinary release waits for it.
        if let Err(error) = destroy(false) {
            self.context.record(error);
            if let Err(error) = destroy(true) {
                self.context.record(error);
            }
        }
    }
}

/// Recorded work.
#[derive(Debug)]
pub struct Graph {
    context: Arc<Context>,
    handle: sys::aclmdlRI,
}

// SAFETY: a handle of the context, used by threads that make the context current.
unsafe impl Send for Graph {}

impl Graph {
    /// What `aclmdlRIExecuteAsync` takes.
    pub fn handle(&self) -> *mut core::ffi::c_void {
        self.handle
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: it is ours, and this is its last use unless it fails.
        self.context.release(|acl| unsafe { api::capture::destroy(acl, self.handle) });
    }
}
