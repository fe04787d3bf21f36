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
