//! The lock that makes one process at a time the writer of a pool.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{self, FlockOperation, Mode, OFlags};

use crate::{Error, Result, invalid};

/// The exclusive lock of a pool's writer, an `flock` on the pool's file. It is held through an open
/// file description of its own, because sent or inherited descriptors share the description of the
/// memfd. The kernel releases it when the process ends.
pub(super) struct WriteLock {
    _locked: OwnedFd,
}

impl WriteLock {
    pub(super) fn acquire(fd: &OwnedFd) -> Result<Self> {
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let own = fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| os("open", &path, error, "mount /proc"))?;
        match fs::flock(&own, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _locked: own }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(invalid!("pool role" is "writer", but
                "the pool has a writer and takes one at a time";
                "import it as a reader, or demote the pool in the writer process")),
            Err(error) => Err(os("flock", path, error, "import the pool as a reader")),
        }
    }
}

pub(super) fn os(
    call: &'static str,
    what: impl Into<String>,
    error: rustix::io::Errno,
    remedy: &'static str,
) -> Error {
    Error::Os { call, what: what.into(), source: error.into(), remedy }
}
