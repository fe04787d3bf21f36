//! Contexts: which one is this thread's.

use super::super::{Acl, sys};
use super::call;
use crate::{Error, Result};

/// This thread's context, if it has one.
pub fn current(acl: &Acl) -> Result<Option<sys::aclrtContext>> {
    let mut context = core::ptr::null_mut();
    match call!(acl, aclrtGetCurrentContext(&mut context)) {
        Ok(()) => Ok(Some(context).filter(|context| !context.is_null())),
        Err(Error::Acl { code: sys::ACL_ERROR_RT_CONTEXT_NULL, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes a context this thread's.
///
/// # Safety
/// The context is alive.
pub unsafe fn set_current(acl: &Acl, context: sys::aclrtContext) -> Result<()> {
    call!(acl, aclrtSetCurrentContext(context))
}
