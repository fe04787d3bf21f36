//! Checks that memory is available before it is allocated.
//!
//! Linux grants mappings that it cannot back and kills a process later. So a size is compared with
//! what the machine, the control groups and the limits of this process can still give, and refused
//! with an error before anything is allocated.

use std::io;

use rustix::process::{Resource, getrlimit};

use crate::system_files::{field, read_text};
use crate::{Error, Result, cgroups};

/// The divisor of the available memory that gives the part left free, for page tables and other
/// processes.
const RESERVE_DIVISOR: usize = 32;

/// Returns the bytes that may be allocated: `MemAvailable`, or what the control groups of version 1
/// and 2 leave if that is less, minus 1/32 of it; or what the limits of this process (`ulimit -v`,
/// `ulimit -d`) leave if that is less still.
///
/// # Errors
/// If `/proc/meminfo` cannot be read.
pub fn bytes() -> Result<usize> {
    let path = "/proc/meminfo";
    let text = read_text(path).map_err(|source| unreadable(path, source))?;
    let machine =
        field(&text, "MemAvailable:").map(|kib| kib.saturating_mul(1024)).ok_or_else(|| {
            unreadable(path, io::Error::new(io::ErrorKind::InvalidData, "no MemAvailable line"))
        })?;
    let bytes = cgroups::available("").map_or(machine, |group| group.min(machine));
    Ok((bytes - bytes / RESERVE_DIVISOR).min(process_limit().unwrap_or(usize::MAX)))
}

/// Returns the bytes of address space and of data that the limits of this process leave.
fn process_limit() -> Option<usize> {
    let status = read_text("/proc/self/status").ok()?;
    let left = |limit, used| {
        let most = usize::try_from(getrlimit(limit).current?).ok()?;
        Some(most.saturating_sub(field(&status, used)?.saturating_mul(1024)))
    };
    [left(Resource::As, "VmSize:"), left(Resource::Data, "VmData:")].into_iter().flatten().min()
}

/// Returns an error if `bytes`, needed for `what`, exceed [`bytes()`].
pub(crate) fn check(what: &'static str, bytes: usize) -> Result<()> {
    compare(what, bytes, self::bytes()?)
}

/// Returns an error if `bytes` of address space, needed for `what`, exceed what the limits of this
/// process leave.
pub(crate) fn check_limits(what: &'static str, bytes: usize) -> Result<()> {
    compare(what, bytes, process_limit().unwrap_or(usize::MAX))
}

fn compare(what: &'static str, bytes: usize, available: usize) -> Result<()> {
    if bytes <= available { Ok(()) } else { Err(Error::Memory { what, bytes, available }) }
}

fn unreadable(path: &'static str, source: io::Error) -> Error {
    if source.kind() == io::ErrorKind::OutOfMemory {
        return Error::OutOfMemory { what: path, bytes: 1024 };
    }
    Error::os("read", path, source, "mount /proc")
}
