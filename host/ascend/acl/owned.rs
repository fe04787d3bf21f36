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
    releases: [Release; 2],
}

/// A call that releases a handle.
pub(super) type Release = unsafe fn(&Acl, *mut c_void) -> Result<()>;

impl Owned {
    /// Owns what the runtime gave, a handle or an address.
    ///
    /// # Safety
    /// Nothing else releases `at`. When the value is dropped, `release` may be called with it in the
    /// context, and once more if the call fails.
    pub unsafe fn new(context: &Arc<Context>, at: *mut c_void, release: Release) -> Self {
        // SAFETY: the caller allows both calls (`# Safety`).
        unsafe { Self::with_releases(context, at, [release; 2]) }
    }

    /// Is [`Self::new`] with another call if the first one fails.
    ///
    /// # Safety
    /// Nothing else releases `at`. When the value is dropped, the first call may be made with it in the context,
    /// and the second one if the first one fails.
    pub(super) unsafe fn with_releases(
        context: &Arc<Context>,
        at: *mut c_void,
        releases: [Release; 2],
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
                // SAFETY: whoever made this value allows the call (`with_releases`).
                unsafe { release(self.context.acl(), self.at.0) }
            });
            let Err(error) = released else { return };
            self.context.record(error);
        }
    }
}
