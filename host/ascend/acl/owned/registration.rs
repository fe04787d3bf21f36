//! Host memory that a device's kernels see.

use std::ffi::c_void;
use std::sync::Arc;

use super::super::api;
use super::Context;
use crate::Result;

/// A registered range. Dropped before the memory is unmapped, and after the kernels that use it.
#[derive(Debug)]
pub struct Registration {
    context: Arc<Context>,
    host: *mut c_void,
    device: *mut c_void,
}

// SAFETY: two addresses that are never dereferenced here; the runtime's record of them belongs to the
// device, not to a thread.
unsafe impl Send for Registration {}
// SAFETY: as for Send.
unsafe impl Sync for Registration {}

impl Registration {
    /// Registers whole pages.
    ///
    /// # Safety
    /// The range stays mapped until this is dropped.
    ///
    /// # Errors
    /// If the runtime or the driver refuses: the memory's kind, its size, its alignment.
    pub unsafe fn new(context: &Arc<Context>, at: *mut u8, bytes: usize) -> Result<Self> {
        let _current = context.bind()?;
        let host = at.cast();
        // SAFETY: the contract.
        let device = unsafe { api::registration::register(context.acl(), host, bytes)? };
        Ok(Self { context: Arc::clone(context), host, device })
    }

    /// The device that it is for.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Where kernels see it.
    pub fn address(&self) -> u64 {
        self.device as u64
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: it was registered, and whoever drops it has waited for the kernels that use it.
        self.context.release(|acl| unsafe { api::registration::unregister(acl, self.host) });
    }
}
