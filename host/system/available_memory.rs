//! Checks that memory is available before it is allocated.
//!
//! Linux grants mappings that it cannot back and kills a process later. So a size is compared with
//! what the machine, the control groups and the limits of this process can still give, and refused
//! with an error before anything is allocated. A source that is missing or tells nonsense refuses nothing.

use crate::system::cgroups;
use crate::system::files::{field, process_limit, read_text};
use crate::{Error, Result, ensure};

/// The divisor of the available memory that gives the part left free, for page tables and other
/// processes.
const RESERVE_DIVISOR: usize = 32;

/// A limit of the process: its name in an error, in `/proc/self/limits`, and that of what it has used of it in
/// `/proc/self/status`.
type ProcessLimit = [&'static str; 3];
const ADDRESSES: ProcessLimit = ["ulimit -v", "Max address space", "VmSize:"];
/// It binds private memory, and so neither a pool nor a file.
const DATA: ProcessLimit = ["ulimit -d", "Max data size", "VmData:"];

/// The bytes that a source leaves, and its name in an error.
type Left = (usize, &'static str);

/// Returns the bytes that may be allocated: `MemAvailable`, or what the control groups of version 1
/// and 2 leave if that is less, minus 1/32 of it; or what the limit of this process (`ulimit -v`) leaves if
/// that is less still. `None` if the system tells none of these.
pub fn bytes() -> Option<usize> {
    left().map(|(bytes, _)| bytes)
}

fn left() -> Option<Left> {
    let machine = read_text("/proc/meminfo").ok().and_then(|text| field(&text, "MemAvailable:"));
    // A machine on which this process runs has some memory left.
    let machine = machine.filter(|&kib| kib > 0).map(|kib| kib.saturating_mul(1024));
    let machine = machine.map(|bytes| (bytes, "MemAvailable in /proc/meminfo"));
    let group = cgroups::memory("").map(|bytes| (bytes, "the memory limit of its control group"));
    let memory = machine.into_iter().chain(group);
    let memory = memory.map(|(bytes, name)| (bytes - bytes / RESERVE_DIVISOR, name));
    memory.chain(left_by(ADDRESSES)).min()
}

fn left_by([name, limit, used]: ProcessLimit) -> Option<Left> {
    let used = field(&read_text("/proc/self/status").ok()?, used)?.saturating_mul(1024);
    Some((process_limit(limit)?.saturating_sub(used), name))
}

/// Returns an error if `bytes`, needed for `what`, exceed [`bytes()`].
pub(crate) fn check(what: &'static str, bytes: usize) -> Result<()> {
    compare(what, bytes, left())
}

/// Returns an error if `bytes` of private memory, needed for `what`, exceed what the limits of this process leave.
pub(crate) fn check_limits(what: &'static str, bytes: usize) -> Result<()> {
    compare(what, bytes, left_by(ADDRESSES).into_iter().chain(left_by(DATA)).min())
}

fn compare(what: &'static str, bytes: usize, left: Option<Left>) -> Result<()> {
    match left {
        Some((available, limit)) if bytes > available => {
            Err(Error::Memory { what, bytes, available, limit })
        }
        _ => Ok(()),
    }
}

/// Returns an error if this process may not write a file of `bytes` bytes. The system would end it.
pub(crate) fn check_file(what: &'static str, bytes: u64) -> Result<()> {
    let limit = process_limit("Max file size").map_or(u64::MAX, |limit| limit as u64);
    ensure!(bytes <= limit, what is format!("{bytes} bytes"), but
        "this process may write files of {limit} bytes";
        "raise the limit (ulimit -f) or ask for fewer rows");
    Ok(())
}
