//! What a value owns of the runtime: a handle or memory, and the call that releases it.

use std::ffi::c_void;
use std::sync::Arc;

use super::{Acl, Context};
use crate::Result;
use crate::system::address::Address;

/// A handle of the runtime or an address that it gave, which is released in its context on drop.
#[derive(Debug)]
pub struct Owned {
    pub(super) context: Arc<Context>,
    at: Address<c_void>,
    release: Release,
}

/// The call that releases a handle.
type Release = unsafe fn(&Acl, *mut c_void) -> Result<()>;

impl Owned {
    /// Owns what the runtime gave, a handle or an address.
    ///
    /// # Safety
    /// Nothing else releases `at`. When the value is dropped, `release` may be called with it in the
    /// context, and once more if the call fails.
    pub unsafe fn new(context: &Arc<Context>, at: *mut c_void, release: Release) -> Self {
        Self { context: Arc::clone(context), at: Address(at), release }
    }

    /// Returns the handle or the address.
    pub fn at(&self) -> *mut c_void {
        self.at.0
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: whoever made this value allows the call (`new`).
        self.context.release(|acl| unsafe { (self.release)(acl, self.at.0) });
    }
}
