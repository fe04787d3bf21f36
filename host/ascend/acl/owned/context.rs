//! A device's context, and the errors of drops that were not returned yet.

use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, mem};

use super::super::{Acl, api, sys};
use crate::device_arrays::RawStream;
use crate::{Error, Result};

/// A context of a device: its default context, which frameworks use, or one that the caller made.
/// All values of this module hold a reference to their context.
///
/// The runtime has a current context per thread and refuses streams of other contexts, so every
/// call that depends on it goes through [`Self::bind`].
pub struct Context {
    acl: Arc<Acl>,
    handle: sys::aclrtContext,
    device: i32,
    /// Whether `aclrtSetDevice` was called, which the drop must undo.
    set: bool,
    errors: Mutex<Vec<Error>>,
}

// SAFETY: every thread may use a context that it makes its current one, which `bind` does; the
// handle is never dereferenced.
unsafe impl Send for Context {}
// SAFETY: as for Send; a lock protects the errors.
unsafe impl Sync for Context {}

impl Context {
    /// Opens the default context of a device (`aclrtSetDevice`). If this thread has a current
    /// context, it stays the current one.
    ///
    /// # Errors
    /// If there is no such device, or a call of the runtime fails.
    pub fn for_device(acl: Arc<Acl>, device: i32) -> Result<Arc<Self>> {
        let count = api::device::count(&acl)?;
        if usize::try_from(device).is_ok_and(|device| device >= count) || device < 0 {
            let limit = format!("{} has {count}", acl.name());
            let remedy = "choose a device that exists (ASCEND_RT_VISIBLE_DEVICES renumbers them)";
            return Err(Error::invalid("device", device, limit, remedy));
        }
        let before = api::context::current(&acl)?;
        api::device::set(&acl, device)?;
        // From here on the drop of `context` undoes `set`.
        let handle = core::ptr::null_mut();
        let mut context = Self { acl, handle, device, set: true, errors: Mutex::default() };
        context.handle = api::context::current(&context.acl)?.ok_or_else(|| {
            Error::invalid("context", "none", "aclrtSetDevice must make one current", "update CANN")
        })?;
        if let Some(before) = before.filter(|&before| before != context.handle) {
            // SAFETY: `before` was this thread's current context at the start of this function.
            unsafe { api::context::set_current(&context.acl, before)? };
        }
        Ok(Arc::new(context))
    }

    /// Adopts this thread's current context, for streams that belong to it; `device` is its device.
    /// The caller owns the context and must destroy it after all values that were made from it.
    ///
    /// # Errors
    /// If this thread has no current context.
    pub fn adopt(acl: Arc<Acl>, device: i32) -> Result<Arc<Self>> {
        let handle = api::context::current(&acl)?.ok_or_else(|| {
            let limit = "this thread has no current context";
            Error::invalid("context", "none", limit, "call aclrtSetCurrentContext first")
        })?;
        Ok(Arc::new(Self { acl, handle, device, set: false, errors: Mutex::default() }))
    }

    /// Returns the runtime.
    pub fn acl(&self) -> &Acl {
        &self.acl
    }

    /// Returns the device's number.
    pub fn device(&self) -> i32 {
        self.device
    }

    /// Makes this the current context of the thread until the guard is dropped.
    ///
    /// # Errors
    /// If a call of the runtime fails. Stored errors of drops stay stored.
    pub fn bind(&self) -> Result<Current<'_>> {
        let before = api::context::current(&self.acl)?;
        if before != Some(self.handle) {
            // SAFETY: the context exists as long as this value.
            unsafe { api::context::set_current(&self.acl, self.handle)? };
        }
        Ok(Current { context: self, before: before.filter(|&b| b != self.handle) })
    }

    /// Removes and returns the oldest stored error of a drop.
    ///
    /// # Errors
    /// That error, if there is one.
    pub fn take_error(&self) -> Result<()> {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if errors.is_empty() { Ok(()) } else { Err(errors.remove(0)) }
    }

    /// Stores an error for the next call.
    pub(crate) fn record(&self, error: Error) {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).push(error);
    }

    /// Runs a release in this context, twice if the first attempt fails, and stores its errors.
    pub(super) fn release(&self, release: impl Fn(&Acl) -> Result<()>) {
        let attempt = || {
            let _current = self.bind()?;
            release(&self.acl)
        };
        if let Err(error) = attempt() {
            self.record(error);
            if let Err(error) = attempt() {
                self.record(error);
            }
        }
    }

    /// Returns the device's number of vector cores.
    pub fn vector_cores(&self) -> Result<usize> {
        api::device::vector_cores(&self.acl, self.device)
    }

    /// Returns the number of vector cores that a stream's kernels may have, if the runtime has such
    /// limits.
    ///
    /// # Safety
    /// `stream` is a live stream of this context, which is the current one of this thread.
    pub unsafe fn stream_vector_cores(&self, stream: RawStream) -> Result<Option<usize>> {
        // SAFETY: the caller guarantees that the stream is alive (`# Safety`).
        unsafe { api::stream::vector_cores(&self.acl, stream.handle()) }
    }

    /// Waits for every stream of the context, at most `timeout_ms` milliseconds if the runtime
    /// supports it.
    ///
    /// # Errors
    /// If work failed or the time is over.
    pub fn synchronize(&self, timeout_ms: i32) -> Result<()> {
        let _current = self.bind()?;
        api::device::synchronize(&self.acl, timeout_ms)
    }
}

impl Context {
    /// Returns the oldest stored error of drops. If this is the last reference to the context, it
    /// also releases the device.
    ///
    /// # Errors
    /// The oldest stored error, or the error of the release.
    pub fn finish(self: Arc<Self>) -> Result<()> {
        self.take_error()?;
        let Some(mut last) = Arc::into_inner(self) else { return Ok(()) };
        if !mem::take(&mut last.set) {
            return Ok(());
        }
        let first = api::device::reset(&last.acl, last.device);
        // Like every release, it is tried once more.
        if first.is_err() {
            let _ = api::device::reset(&last.acl, last.device);
        }
        first
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("acl", &self.acl).field("device", &self.device).finish()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // Everything that was made from the context has been dropped, so no value is left that
        // could return an error.
        if mem::take(&mut self.set) && api::device::reset(&self.acl, self.device).is_err() {
            let _ = api::device::reset(&self.acl, self.device);
        }
    }
}

/// A guard: until it is dropped, the context is this thread's current one.
#[derive(Debug)]
pub struct Current<'a> {
    context: &'a Context,
    before: Option<sys::aclrtContext>,
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: `before` was this thread's current context when this guard was made; its
            // owner keeps it until the call that made the guard returns.
            if let Err(error) = unsafe { api::context::set_current(&self.context.acl, before) } {
                self.context.record(error);
            }
        }
    }
}
