//! What a value owns of the runtime: a handle or memory, and the call that releases it.

use std::ffi::c_void;
use std::sync::Arc;

use super::{Acl, Context};
use crate::Result;
use crate::system::address::Address;

/// A handle of the runtime or an address that it gave, which is released in its context on drop.
#[derive(Debug)]
pub(super) struct Owned {
    pub context: Arc<Context>,
    at: Address<c_void>,
    release: Release,
}

/// The call that releases a handle. [`Owned`] passes its own, and does not use it after a release that
/// succeeds.
type Release = fn(&Acl, *mut c_void) -> Result<()>;

impl Owned {
    pub fn new(context: &Arc<Context>, at: *mut c_void, release: Release) -> Self {
        Self { context: Arc::clone(context), at: Address(at), release }
    }

    pub fn at(&self) -> *mut c_void {
        self.at.0
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.context.release(|acl| (self.release)(acl, self.at.0));
    }
}
