//! Streams and captured graphs.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use super::{Acl, Context, Owned, Release, sys};
use crate::device_arrays::RawStream;
use crate::{Error, Result};

/// An owned stream.
#[derive(Debug)]
pub struct Stream(Owned);

impl Stream {
    /// Creates a stream.
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        let _current = context.bind()?;
        let mut handle = core::ptr::null_mut();
        // SAFETY: the function writes a handle to `handle`.
        unsafe { context.acl().aclrtCreateStream(&mut handle)? };
        // The ordinary release waits for the stream's work. If it fails, for example because work never ends,
        // the stream is destroyed by force.
        let releases: &[Release; 2] = &[Acl::aclrtDestroyStream, Acl::aclrtDestroyStreamForce];
        // SAFETY: the stream was created above, and `Owned` releases it. Nothing else waits for the work that is
        // dropped by force.
        Ok(Self(unsafe { Owned::new(context, handle, releases) }))
    }

    /// Returns the handle, which unsafe calls take. It is valid until this value is dropped.
    pub fn raw(&self) -> RawStream {
        // SAFETY: this value owns the stream, which is on the device of the context.
        unsafe { RawStream::new(self.0.at()) }
    }

    /// Waits for all work of the stream, at most `timeout_ms` milliseconds.
    pub fn synchronize(&self, timeout_ms: i32) -> Result<()> {
        let (_current, acl) = (self.0.context.bind()?, self.0.context.acl());
        // SAFETY: this value owns the stream.
        unsafe { acl.aclrtSynchronizeStreamWithTimeout(self.0.at(), timeout_ms) }
    }

    /// Captures what `work` puts into the stream, instead of running it. Until it returns, the
    /// runtime refuses calls of this thread that wait.
    ///
    /// # Errors
    /// The error that `work` returned, or that of the runtime; the captured work is dropped then.
    pub fn capture(&self, work: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let (_current, acl) = (self.0.context.bind()?, self.0.context.acl());
        let (stream, mode) = (self.0.at(), sys::ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL);
        // SAFETY: this value owns the stream.
        unsafe { acl.aclmdlRICaptureBegin(stream, mode)? };
        let done = work();
        // The capture is ended even if `work` failed, because the stream would be unusable
        // otherwise.
        let end = || {
            let mut handle = core::ptr::null_mut();
            // SAFETY: this value owns the stream, and the function writes a handle to `handle`.
            unsafe { acl.aclmdlRICaptureEnd(stream, &mut handle)? };
            // SAFETY: the capture returned the graph, and `Owned` releases it.
            let graph = unsafe { Owned::new(&self.0.context, handle, &[Acl::aclmdlRIDestroy; 2]) };
            Ok(Graph(graph, PhantomData))
        };
        // Like every release, it is tried once more; a graph that it returns is dropped.
        let graph = end().inspect_err(|_| drop(end()));
        done.and(graph)
    }

    /// Puts the work of a graph into the stream.
    pub fn replay(&self, graph: &Graph) -> Result<()> {
        let (_current, acl) = (self.0.context.bind()?, self.0.context.acl());
        // SAFETY: stream and graph are owned by their values. Work comes into a capture by unsafe calls
        // only, whose callers keep its memory valid for replays: `Mirrored::copy`, `Args::launch`,
        // `Engine::enqueue_plan` and those that refer to it.
        unsafe { acl.aclmdlRIExecuteAsync(graph.0.at(), self.0.at()) }
    }
}

/// What an engine asks about a caller's stream.
impl Context {
    /// Returns the number of vector cores that a stream's kernels may have: the limit of the
    /// stream, else of the process, else the device's number. `None` if the runtime has no limits
    /// (before CANN 8.3, or with an older driver).
    ///
    /// # Safety
    /// `stream` is a live stream of this context, which is the current one of this thread.
    pub(crate) unsafe fn stream_vector_cores(&self, stream: RawStream) -> Result<Option<usize>> {
        let acl = self.acl();
        if acl.functions.aclrtGetStreamResLimit.is_none() {
            return Ok(None);
        }
        let (stream, kind, mut n) = (stream.handle(), sys::ACL_RT_DEV_RES_VECTOR_CORE, 0);
        // SAFETY: the stream is alive (`# Safety`), and the function writes a number to `n`.
        match unsafe { acl.aclrtGetStreamResLimit(stream, kind, &mut n) } {
            // A limit of 0 is ignored, because no kernel could run.
            Ok(()) => Ok(Some(n as usize).filter(|&n| n > 0)),
            Err(Error::Acl { code: sys::ACL_ERROR_RT_FEATURE_NOT_SUPPORT, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether a stream is being captured; false if the runtime lacks
    /// `aclmdlRICaptureGetInfo`.
    ///
    /// # Safety
    /// `stream` is a live stream of this context.
    pub(crate) unsafe fn is_capturing(&self, stream: RawStream) -> Result<bool> {
        let (_current, acl) = (self.bind()?, self.acl());
        if acl.functions.aclmdlRICaptureGetInfo.is_none() {
            return Ok(false);
        }
        let (mut status, mut graph) =
            (sys::ACL_MODEL_RI_CAPTURE_STATUS_NONE, core::ptr::null_mut());
        // SAFETY: the stream is alive (`# Safety`), and the function writes to `status` and `graph`.
        unsafe { acl.aclmdlRICaptureGetInfo(stream.handle(), &mut status, &mut graph)? };
        Ok(status != sys::ACL_MODEL_RI_CAPTURE_STATUS_NONE)
    }
}

/// A graph of captured work. Any thread may have it, but only one at a time.
#[derive(Debug)]
pub struct Graph(Owned, PhantomData<Cell<()>>);
