//! Registered host memory.

use std::ffi::c_void;
use std::sync::Arc;

use super::{Context, call, sys};
use crate::Result;

/// A registered range of host memory. It must be dropped before the memory is unmapped, and after
/// the kernels that use it are done.
#[derive(Debug)]
pub struct Registration {
    context: Arc<Context>,
    host: *mut c_void,
    device: *mut c_void,
}

// SAFETY: the addresses are never dereferenced here, and the registration belongs to the device,
// not to a thread.
unsafe impl Send for Registration {}
// SAFETY: the fact above holds for shared references, too.
unsafe impl Sync for Registration {}

impl Registration {
    /// Registers whole pages.
    ///
    /// # Safety
    /// The range stays mapped until the registration is dropped.
    ///
    /// # Errors
    /// If the runtime or the driver refuses the kind, the size or the alignment of the memory.
    pub unsafe fn new(context: &Arc<Context>, at: *mut u8, bytes: usize) -> Result<Self> {
        let _current = context.bind()?;
        let (acl, host, mut device) = (context.acl(), at.cast(), core::ptr::null_mut());
        let (bytes, kind) = (bytes as u64, sys::ACL_HOST_REGISTER_MAPPED);
        // SAFETY: the caller keeps the range mapped (`# Safety`).
        unsafe { call!(acl, aclrtHostRegister(host, bytes, kind, &mut device))? };
        Ok(Self { context: Arc::clone(context), host, device })
    }

    /// Returns the context that the range is registered in.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Returns the device address of the range. Only kernels can use it; the runtime's copies
    /// refuse it.
    pub fn address(&self) -> u64 {
        self.device as u64
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: the range was registered by `new`, and the owner has waited for the kernels that
        // use it.
        self.context.release(|acl| unsafe { call!(acl, aclrtHostUnregister(self.host)) });
    }
}
