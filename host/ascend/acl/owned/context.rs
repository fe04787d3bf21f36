//! One device's context, and the errors that nobody could be told yet.

use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, mem};

use super::super::{Acl, api, sys};
use crate::queued::RawStream;
use crate::{Error, Result};

/// A device's shared context, the one that frameworks use. Every owned thing holds it.
///
/// The runtime has a current context per thread and refuses streams of others, so every call that
/// needs one goes through [`Self::bind`].
pub struct Context {
    acl: Arc<Acl>,
    handle: sys::aclrtContext,
    device: i32,
    /// Whether `aclrtSetDevice` was called for it.
    set: bool,
    errors: Mutex<Vec<Error>>,
}

// SAFETY: a context may be used by every thread that makes it its current one, which `bind` does; the
// handle itself is never dereferenced.
unsafe impl Send for Context {}
// SAFETY: as for Send; the errors are behind a lock.
unsafe impl Sync for Context {}

impl Context {
    /// Binds a device. This thread's current context stays what it was, if it had one.
    ///
    /// # Errors
    /// If there is no such device, or the runtime refuses.
    pub fn open(acl: Arc<Acl>, device: i32) -> Result<Arc<Self>> {
        let count = api::device::count(&acl)?;
        if usize::try_from(device).is_ok_and(|device| device >= count) || device < 0 {
            let limit = format!("{} has {count}", acl.name());
            let remedy = "choose a device that is there (ASCEND_RT_VISIBLE_DEVICES renumbers them)";
            return Err(Error::invalid("device", device, limit, remedy));
        }
        let before = api::context::current(&acl)?;
        api::device::set(&acl, device)?;
        // From here on a drop undoes the set.
        let handle = core::ptr::null_mut();
        let mut context = Self { acl, handle, device, set: true, errors: Mutex::default() };
        context.handle = api::context::current(&context.acl)?.ok_or_else(|| {
            Error::invalid("context", "none", "a set device has one", "update CANN")
        })?;
        if let Some(before) = before.filter(|&before| before != context.handle) {
            // SAFETY: it was this thread's current context a moment ago.
            unsafe { api::context::set_current(&context.acl, before)? };
        }
        Ok(Arc::new(context))
    }

    /// Takes this thread's current context, for streams that belong to it. `device` is its device.
    /// The caller destroys it after everything that was made from it.
    ///
    /// # Errors
    /// If this thread has none.
    pub fn adopt(acl: Arc<Acl>, device: i32) -> Result<Arc<Self>> {
        let handle = api::context::current(&acl)?.ok_or_else(|| {
            let limit = "this thread has no current context";
            Error::invalid("context", "none", limit, "call aclrtSetCurrentContext first")
        })?;
        Ok(Arc::new(Self { acl, handle, device, set: false, errors: Mutex::default() }))
    }

    /// The runtime.
    pub fn acl(&self) -> &Acl {
        &self.acl
    }

    /// The device.
    pub fn device(&self) -> i32 {
        self.device
    }

    /// Makes it this thread's current context until the guard is dropped, and reports an error that
    /// a `Drop` left.
    ///
    /// # Errors
    /// What a `Drop` left, or the runtime's refusal.
    pub fn bind(&self) -> Result<Current<'_>> {
        self.take_error()?;
        self.enter()
    }

    /// The same for a `Drop`, which adds errors and reports none.
    pub(super) fn enter(&self) -> Result<Current<'_>> {
        let before = api::context::current(&self.acl)?;
        if before != Some(self.handle) {
            // SAFETY: the context is alive as long as this is.
            unsafe { api::context::set_current(&self.acl, self.handle)? };
        }
        Ok(Current { context: self, before: before.filter(|&b| b != self.handle) })
    }

    /// Reports what a `Drop` left, the oldest first.
    ///
    /// # Errors
    /// That error.
    pub fn take_error(&self) -> Result<()> {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if errors.is_empty() { Ok(()) } else { Err(errors.remove(0)) }
    }

    /// Leaves an error for the next call.
    pub(crate) fn record(&self, error: Error) {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).push(error);
    }

    /// Runs a release in this context, twice if the first attempt fails.
    pub(super) fn release(&self, release: impl Fn(&Acl) -> Result<()>) {
        let attempt = || {
            let _current = self.enter()?;
            release(&self.acl)
        };
        if let Err(error) = attempt() {
            self.record(error);
            if let Err(error) = attempt() {
                self.record(error);
            }
        }
    }

    /// The device's vector cores.
    ///
    /// # Errors
    /// If the runtime cannot tell.
    pub fn vector_cores(&self) -> Result<usize> {
        api::device::vector_cores(&self.acl, self.device)
    }

    /// Vector cores that a stream's kernels may have, if the runtime tells. The context is the stream's, and
    /// this thread's current one.
    ///
    /// # Safety
    /// The stream is alive.
    ///
    /// # Errors
    /// If the runtime refuses.
    pub unsafe fn stream_vector_cores(&self, stream: RawStream) -> Result<Option<usize>> {
        // SAFETY: the contract.
        unsafe { api::stream::vector_cores(&self.acl, stream.handle()) }
    }

    /// Waits for every stream of the context.
    ///
    /// # Errors
    /// If something failed, or the time is over.
    pub fn synchronize(&self, timeout_ms: i32) -> Result<()> {
        let _current = self.bind()?;
        api::device::synchronize(&self.acl, timeout_ms)
    }
}

impl Context {
    /// [`Self::synchronize`] for a `Drop`: it waits whatever other drops have left to report.
    pub(crate) fn settle(&self, timeout_ms: i32) -> Result<()> {
        let _current = self.enter()?;
        api::device::synchronize(&self.acl, timeout_ms)
    }

    /// Reports what drops left; and gives the device up, if nothing else holds it.
    ///
    /// # Errors
    /// The oldest error.
    pub fn finish(self: Arc<Self>) -> Result<()> {
        self.take_error()?;
        let Some(mut last) = Arc::into_inner(self) else { return Ok(()) };
        if !mem::take(&mut last.set) {
            return Ok(());
        }
        let first = api::device::reset(&last.acl, last.device);
        // As every release, tried once more.
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
        // Everything made from it held it and is gone. Nobody is left to be told of a failure.
        if mem::take(&mut self.set) && api::device::reset(&self.acl, self.device).is_err() {
            let _ = api::device::reset(&self.acl, self.device);
        }
    }
}

/// While it lives, the context is this thread's current one.
#[derive(Debug)]
pub struct Current<'a> {
    context: &'a Context,
    before: Option<sys::aclrtContext>,
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: it was this thread's current context when this guard was made; its owner keeps
            // it for the length of a call of ours.
            if let Err(error) = unsafe { api::context::set_current(&self.context.acl, before) } {
                self.context.record(error);
            }
        }
    }
}
