//! The state of a device after failures.

use super::acl::sys;
use crate::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// Every call so far succeeded, or the tables were reset since.
    Good,
    /// A call failed, so tables may list rows that were never copied. The next plan must wait for
    /// the stream and reset every table.
    NeedsReset,
    /// The device does not answer.
    Lost,
}

impl Health {
    /// Returns the state after a synchronization that failed with `error`. One that was refused
    /// because this thread captures a stream says nothing about the device.
    pub fn after(error: &Error) -> Self {
        match error {
            Error::Acl { code: sys::ACL_ERROR_RT_STREAM_CAPTURE_MODE_NOT_SUPPORT, .. } => {
                Self::NeedsReset
            }
            _ => Self::Lost,
        }
    }
}

/// Returns the error of every call on a lost device.
pub(super) fn lost() -> Error {
    let limit = "it did not answer after a failure";
    Error::invalid("device state", "lost", limit, "destroy the engine and make a new one")
}
