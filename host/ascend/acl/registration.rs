//! Registered host memory.

use std::ffi::c_void;
use std::sync::Arc;

use super::owned::Owned;
use super::{Acl, Context, sys};
use crate::Result;
use crate::system::address::Address;

/// A registered range of host memory. It must be dropped before the memory is unmapped, and after
/// the kernels that use it are done.
#[derive(Debug)]
pub struct Registration {
    _host: Owned,
    device: Address<c_void>,
}

impl Registration {
    /// Registers whole pages.
    ///
    /// # Safety
    /// The range stays mapped until the registration is dropped.
    pub unsafe fn new(context: &Arc<Context>, at: *mut u8, bytes: usize) -> Result<Self> {
        let _current = context.bind()?;
        let (acl, host, mut device) = (context.acl(), at.cast(), core::ptr::null_mut());
        let (bytes, kind) = (bytes as u64, sys::ACL_HOST_REGISTER_MAPPED);
        // SAFETY: the range stays mapped until it is unregistered (`# Safety`).
        unsafe { acl.aclrtHostRegister(host, bytes, kind, &mut device)? };
        // SAFETY: the range was registered above, and `Owned` unregisters it. Whoever launched a kernel
        // with its address keeps the address valid until the kernel is done (`Args::launch`).
        let host = unsafe { Owned::new(context, host, &[Acl::aclrtHostUnregister; 2]) };
        Ok(Self { _host: host, device: Address(device) })
    }

    /// Returns the device address of the range. Only kernels can use it; the runtime's copies
    /// refuse it.
    pub fn address(&self) -> u64 {
        self.device.0 as u64
    }
}
