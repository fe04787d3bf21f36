//! The state of a device after failures.

use super::acl::sys;
use crate::{Error, Result, ensure};

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
    /// Returns the state after a synchronization that failed with `error`.
    pub fn after(error: &Error) -> Self {
        if is_refused_in_capture(error) { Self::NeedsReset } else { Self::Lost }
    }

    /// Returns an error, which is that of every call, if the device is lost.
    pub fn check(self) -> Result<()> {
        ensure!(self != Self::Lost, "device state" is "lost", but "it did not answer after a failure";
            "destroy the engine and make a new one");
        Ok(())
    }
}

/// Returns whether a synchronization was refused because this thread captures a stream, which says
/// nothing about the device.
pub(super) fn is_refused_in_capture(error: &Error) -> bool {
    matches!(error, Error::Acl { code: sys::ACL_ERROR_RT_STREAM_CAPTURE_MODE_NOT_SUPPORT, .. })
}
