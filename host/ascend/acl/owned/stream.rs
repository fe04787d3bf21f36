//! Streams and captured graphs.

use std::sync::Arc;

use super::super::{api, sys};
use super::{Context, Event};
use crate::Result;
use crate::device_arrays::RawStream;

/// An owned stream.
#[derive(Debug)]
pub struct Stream {
    context: Arc<Context>,
    raw: RawStream,
}

impl Stream {
    /// Creates a stream.
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        let _current = context.bind()?;
        let handle = api::stream::create(context.acl())?;
        // SAFETY: the stream was created above and is destroyed by this value's drop only.
        let raw = unsafe { RawStream::new(handle) };
        Ok(Self { context: Arc::clone(context), raw })
    }

    /// Returns the handle, which calls take.
    pub fn raw(&self) -> RawStream {
        self.raw
    }

    /// Waits for all work of the stream, at most `timeout_ms` milliseconds.
    ///
    /// # Errors
    /// If work failed, or the time is over.
    pub fn synchronize(&self, timeout_ms: i32) -> Result<()> {
        let _current = self.context.bind()?;
        // SAFETY: this value owns the stream.
        unsafe { api::stream::synchronize(self.context.acl(), self.raw.handle(), timeout_ms) }
    }

    /// Returns whether all work of the stream is done.
    ///
    /// # Errors
    /// If work failed.
    pub fn done(&self) -> Result<bool> {
        let _current = self.context.bind()?;
        // SAFETY: this value owns the stream.
        unsafe { api::stream::done(self.context.acl(), self.raw.handle()) }
    }

    /// Makes later work of the stream wait for the event's latest record.
    pub fn wait(&self, event: &Event) -> Result<()> {
        let _current = self.context.bind()?;
        // SAFETY: stream and event are owned by their values.
        unsafe { api::stream::wait_event(self.context.acl(), self.raw.handle(), event.handle()) }
    }

    /// Captures what `work` puts into the stream, instead of running it.
    ///
    /// # Errors
    /// The error that `work` returned, or that of the runtime; the captured work is dropped then.
    pub fn capture(&self, work: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let _current = self.context.bind()?;
        let acl = self.context.acl();
        // SAFETY: this value owns the stream.
        unsafe { api::capture::begin(acl, self.raw.handle())? };
        let done = work();
        // The capture is ended even if `work` failed, because the stream would be unusable
        // otherwise.
        // SAFETY: this value owns the stream.
        let end = || unsafe { api::capture::end(acl, self.raw.handle()) };
        let graph = |handle| Graph { context: Arc::clone(&self.context), handle };
        let graph = end().map(graph).inspect_err(|_| {
            // Like every release, it is tried once more; a graph that it returns is dropped.
            let _ = end().map(graph);
        });
        done.and(graph)
    }

    /// Puts the work of a graph into the stream.
    pub fn replay(&self, graph: &Graph) -> Result<()> {
        let _current = self.context.bind()?;
        // SAFETY: stream and graph are owned by their values. The contracts of the captured
        // `enqueue_*` calls keep the memory of their work valid for replays.
        unsafe { api::capture::replay(self.context.acl(), graph.handle, self.raw.handle()) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let destroy = |force| {
            let _current = self.context.bind()?;
            // SAFETY: this value owns the stream, and it is not used after a release that succeeds.
            unsafe {
                if force {
                    api::stream::destroy_force(self.context.acl(), self.raw.handle())
                } else {
                    api::stream::destroy(self.context.acl(), self.raw.handle())
                }
            }
        };
        // The ordinary release waits for the stream's work. If it fails, for example because work
        // never ends, the stream is destroyed by force.
        if let Err(error) = destroy(false) {
            self.context.record(error);
            if let Err(error) = destroy(true) {
                self.context.record(error);
            }
        }
    }
}

/// A graph of captured work.
#[derive(Debug)]
pub struct Graph {
    context: Arc<Context>,
    handle: sys::aclmdlRI,
}

// SAFETY: the handle belongs to the context, not to a thread; threads that use it make the context
// current.
unsafe impl Send for Graph {}

impl Graph {
    /// Returns the handle, which `aclmdlRIExecuteAsync` takes.
    pub fn handle(&self) -> *mut core::ffi::c_void {
        self.handle
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: this value owns the graph, and it is not used after a release that succeeds.
        self.context.release(|acl| unsafe { api::capture::destroy(acl, self.handle) });
    }
}
