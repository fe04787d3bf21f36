//! A device's context, what is owned in it, and the errors of drops that were not returned yet.

use std::ffi::c_void;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Acl, sys};
use crate::system::address::Address;
use crate::{Error, Result, ensure, invalid};

/// The default context of a device, which frameworks use. All values of [`super`] hold a reference to their context.
///
/// The runtime has a current context per thread and refuses streams of other contexts, so every
/// call that depends on it goes through [`Self::bind`].
#[derive(Debug)]
pub struct Context {
    acl: Arc<Acl>,
    /// Every thread may use it that makes it its current one, which [`Self::bind`] does.
    handle: Address<c_void>,
    device: i32,
    /// Whether `aclrtSetDevice` was called, which the drop must undo.
    set: bool,
    errors: Mutex<Vec<Error>>,
}

impl Context {
    /// Opens the default context of a device (`aclrtSetDevice`). If this thread has a current
    /// context, it stays the current one.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn for_device(acl: Arc<Acl>, device: i32) -> Result<Arc<Self>> {
        let mut count = 0;
        // SAFETY: the function writes a number to `count`.
        unsafe { acl.aclrtGetDeviceCount(&mut count)? };
        ensure!(u32::try_from(device).is_ok_and(|device| device < count), "device" is device, but
            "{} has {count}", acl.name();
            "choose a device that exists (ASCEND_RT_VISIBLE_DEVICES renumbers them)");
        let before = current(&acl)?;
        // SAFETY: the function takes a number.
        unsafe { acl.aclrtSetDevice(device)? };
        // From here on the drop of `context` undoes the call.
        let handle = Address(core::ptr::null_mut());
        let mut context = Self { acl, handle, device, set: true, errors: Mutex::default() };
        context.handle.0 = current(&context.acl)?.ok_or_else(|| {
            invalid!("context" is "none", but "aclrtSetDevice must make one current"; "update CANN")
        })?;
        if let Some(before) = before.filter(|&before| before != context.handle.0) {
            // SAFETY: `before` was this thread's current context at the start of this function.
            unsafe { context.acl.aclrtSetCurrentContext(before)? };
        }
        Ok(Arc::new(context))
    }

    /// Returns the runtime.
    pub fn acl(&self) -> &Acl {
        &self.acl
    }

    /// Returns the device's number.
    pub fn device(&self) -> i32 {
        self.device
    }

    /// Makes this the current context of the thread until the guard is dropped. Stored errors of drops
    /// stay stored.
    pub fn bind(&self) -> Result<Current<'_>> {
        let before = current(&self.acl)?;
        if before != Some(self.handle.0) {
            // SAFETY: the context exists as long as this value, whose drop releases the device.
            unsafe { self.acl.aclrtSetCurrentContext(self.handle.0)? };
        }
        Ok(Current { context: self, before: before.filter(|&b| b != self.handle.0) })
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

    /// Returns the device's number of vector cores.
    pub fn vector_cores(&self) -> Result<usize> {
        let (device, kind) = (self.device.unsigned_abs(), sys::ACL_DEVICE_INFO_VECTOR_CORE_NUM);
        let mut n = 0;
        // SAFETY: the function writes a number to `n`.
        unsafe { self.acl.aclGetDeviceCapability(device, kind, &mut n)? };
        Ok(usize::try_from(n).unwrap_or(0))
    }

    /// Returns the free and the total bytes of the device's memory.
    pub fn free_and_total_bytes(&self) -> Result<(usize, usize)> {
        let (_current, mut free, mut total) = (self.bind()?, 0, 0);
        // SAFETY: the function writes a number to `free` and to `total`.
        unsafe { self.acl.aclrtGetMemInfo(sys::ACL_HBM_MEM, &mut free, &mut total)? };
        Ok((free, total))
    }

    /// Waits for every stream of the context, at most `timeout_ms` milliseconds if the runtime has
    /// `aclrtSynchronizeDeviceWithTimeout`.
    pub fn synchronize(&self, timeout_ms: i32) -> Result<()> {
        let _current = self.bind()?;
        if self.acl.functions.aclrtSynchronizeDeviceWithTimeout.is_some() {
            // SAFETY: the function takes a number.
            return unsafe { self.acl.aclrtSynchronizeDeviceWithTimeout(timeout_ms) };
        }
        // SAFETY: the function takes no arguments.
        unsafe { self.acl.aclrtSynchronizeDevice() }
    }

    /// Returns the oldest stored error of drops. If this is the last reference to the context, it
    /// also releases the device.
    ///
    /// # Errors
    /// The oldest stored error, or the error of the release.
    pub fn finish(self: Arc<Self>) -> Result<()> {
        self.take_error()?;
        Arc::into_inner(self).map_or(Ok(()), |mut last| last.reset())
    }

    /// Undoes `aclrtSetDevice`, once, and returns the error of the first attempt.
    fn reset(&mut self) -> Result<()> {
        if !mem::take(&mut self.set) {
            return Ok(());
        }
        // SAFETY: `for_device` set the device, and all that was made from the context is dropped.
        let attempt = || unsafe { self.acl.aclrtResetDevice(self.device) };
        // Like every release, it is tried once more.
        attempt().inspect_err(|_| drop(attempt()))
    }
}

/// Returns this thread's current context, if it has one.
fn current(acl: &Acl) -> Result<Option<sys::aclrtContext>> {
    let mut context = core::ptr::null_mut();
    // SAFETY: the function writes a handle to `context`.
    match unsafe { acl.aclrtGetCurrentContext(&mut context) } {
        Ok(()) => Ok(Some(context).filter(|context| !context.is_null())),
        Err(Error::Acl { code: sys::ACL_ERROR_RT_CONTEXT_NULL, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // Everything that was made from the context has been dropped, so no value is left that
        // could return the error.
        let _ = self.reset();
    }
}

/// A guard: until it is dropped, the context is this thread's current one.
#[derive(Debug)]
pub struct Current<'a> {
    pub(super) context: &'a Context,
    before: Option<sys::aclrtContext>,
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: `before` was this thread's current context when this guard was made; its
            // owner keeps it until the call that made the guard returns.
            let restored = unsafe { self.context.acl.aclrtSetCurrentContext(before) };
            restored.unwrap_or_else(|error| self.context.record(error));
        }
    }
}

/// A handle of the runtime or an address that it gave, which is released in its context on drop.
#[derive(Debug)]
pub struct Owned {
    pub(super) context: Arc<Context>,
    at: Address<c_void>,
    /// A reference, because a pool has one such value per chunk.
    releases: &'static [Release; 2],
}

/// A call that releases a handle.
pub type Release = unsafe fn(&Acl, *mut c_void) -> Result<()>;

impl Owned {
    /// Owns what the runtime gave, a handle or an address.
    ///
    /// # Safety
    /// Nothing else releases `at`. When the value is dropped, the first call may be made with it in the context,
    /// and the second one if the first one fails.
    pub unsafe fn new(
        context: &Arc<Context>,
        at: *mut c_void,
        releases: &'static [Release; 2],
    ) -> Self {
        Self { context: Arc::clone(context), at: Address(at), releases }
    }

    /// Returns the handle or the address.
    pub fn at(&self) -> *mut c_void {
        self.at.0
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        for release in self.releases {
            let released = self.context.bind().and_then(|_current| {
                // SAFETY: whoever made this value allows the call (`new`).
                unsafe { release(self.context.acl(), self.at.0) }
            });
            let Err(error) = released else { return };
            self.context.record(error);
        }
    }
}
