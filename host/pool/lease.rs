//! The right to write a pool: one process at a time has it.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{self, FlockOperation, Mode, OFlags};

use crate::{Error, Result};

/// The right to write a pool: an exclusive lock on its file, held through an open file description
/// of its own. Descriptors that were sent or inherited share the description of the memfd and so
/// must not be what holds it. The kernel ends it with the process, however that ends.
pub(super) struct Lease {
    _locked: OwnedFd,
}

impl Lease {
    pub(super) fn take(fd: &OwnedFd) -> Result<Self> {
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let own = fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| os("open", &path, error, "mount /proc"))?;
        match fs::flock(&own, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _locked: own }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::invalid(
                "pool role",
                "writer",
                "the pool has a writer and takes one at a time",
                "import it with Role::Reader, or call HostPool::demote where it is written",
            )),
            Err(error) => Err(os("flock", path, error, "import the pool with Role::Reader")),
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
