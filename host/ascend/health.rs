//! How far a device is to be trusted after a failure.

use super::acl::sys;
use crate::Error;

/// How far the device is to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Good,
    /// Something failed: tables and rows may disagree.
    Shaken,
    /// It does not answer.
    Lost,
}

impl Health {
    /// What is known after a wait that failed: of one that was refused because this thread captures a
    /// stream, nothing new.
    pub fn after(error: &Error) -> Self {
        match error {
            Error::Acl { code: sys::ACL_ERROR_RT_STREAM_CAPTURE_MODE_NOT_SUPPORT, .. } => {
                Self::Shaken
            }
            _ => Self::Lost,
        }
    }
}

/// The error of every call on a lost device.
pub(super) fn lost() -> Error {
    let limit = "it did not answer after a failure";
    Error::invalid("device state", "lost", limit, "destroy the engine and make a new one")
}
