//! The current context of a thread.

use super::super::{Acl, sys};
use super::call;
use crate::{Error, Result};

/// Returns this thread's current context, if it has one.
pub fn current(acl: &Acl) -> Result<Option<sys::aclrtContext>> {
    let mut context = core::ptr::null_mut();
    match call!(acl, aclrtGetCurrentContext(&mut context)) {
        Ok(()) => Ok(Some(context).filter(|context| !context.is_null())),
        Err(Error::Acl { code: sys::ACL_ERROR_RT_CONTEXT_NULL, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes a context the current one of this thread.
///
/// # Safety
/// `context` must be a live context.
pub unsafe fn set_current(acl: &Acl, context: sys::aclrtContext) -> Result<()> {
    call!(acl, aclrtSetCurrentContext(context))
}
