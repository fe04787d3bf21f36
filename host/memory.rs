//! Checks that memory is available before it is allocated.
//!
//! Linux grants mappings that it cannot back and kills a process later. So a size is compared with
//! what the machine, the control groups and the limits of this process can still give, and refused with an error
//! before anything is allocated.

mod groups;

use std::{fs, io, path::Path};

use rustix::process::{Resource, getrlimit};

use crate::{Error, Result};

/// The divisor of the available memory that gives the part left free, for page tables and other
/// processes.
const RESERVE_DIVISOR: usize = 32;

/// Returns the bytes that may be allocated: `MemAvailable`, or what the control groups of version 1
/// and 2 leave if that is less, minus 1/32 of it; or what the limits of this process (`ulimit -v`,
/// `ulimit -d`) leave if that is less still.
///
/// # Errors
/// If `/proc/meminfo` cannot be read.
pub fn available() -> Result<usize> {
    let path = "/proc/meminfo";
    let text = fs::read_to_string(path).map_err(|source| unreadable(path, source))?;
    let machine =
        field(&text, "MemAvailable:").map(|kib| kib.saturating_mul(1024)).ok_or_else(|| {
            unreadable(path, io::Error::new(io::ErrorKind::InvalidData, "no MemAvailable line"))
        })?;
    let bytes = groups::available(Path::new("/")).map_or(machine, |group| group.min(machine));
    Ok((bytes - bytes / RESERVE_DIVISOR).min(process_limit().unwrap_or(usize::MAX)))
}

/// Returns the bytes of address space and of data that the limits of this process leave.
fn process_limit() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let left = |limit, used| {
        let most = usize::try_from(getrlimit(limit).current?).ok()?;
        Some(most.saturating_sub(field(&status, used)?.saturating_mul(1024)))
    };
    [left(Resource::As, "VmSize:"), left(Resource::Data, "VmData:")].into_iter().flatten().min()
}

/// Returns an error if `bytes`, needed for `what`, exceed [`available`].
pub(crate) fn check(what: &'static str, bytes: usize) -> Result<()> {
    let available = available()?;
    if bytes <= available {
        return Ok(());
    }
    Err(Error::Memory { what, bytes, available })
}

/// Returns the bytes of free, unreserved hugetlb pages of `page` bytes and of those that the kernel
/// may still make out of ordinary memory (`nr_overcommit_hugepages`).
pub(crate) fn hugetlb_bytes(page: usize) -> usize {
    let folder = format!("/sys/kernel/mm/hugepages/hugepages-{}kB", page / 1024);
    let read = |name: &str| read_number(&Path::new(&folder).join(name)).unwrap_or(0);
    let free = read("free_hugepages").saturating_sub(read("resv_hugepages"));
    let more = read("nr_overcommit_hugepages").saturating_sub(read("surplus_hugepages"));
    let ordinary = if more == 0 { 0 } else { available().unwrap_or(0) / page };
    free.saturating_add(more.min(ordinary)).saturating_mul(page)
}

/// Returns an empty vector with room for `len` values, or an error that takes no memory.
pub(crate) fn with_capacity<T>(what: &'static str, len: usize) -> Result<Vec<T>> {
    let mut all = Vec::new();
    let bytes = len.saturating_mul(size_of::<T>());
    all.try_reserve_exact(len).map_err(|_| Error::OutOfMemory { what, bytes })?;
    Ok(all)
}

/// Returns a vector of `len` times `value`.
pub(crate) fn filled<T: Clone>(what: &'static str, len: usize, value: T) -> Result<Vec<T>> {
    let mut all = with_capacity(what, len)?;
    all.resize(len, value);
    Ok(all)
}

/// Returns a copy of `values`.
pub(crate) fn copied<T: Copy>(what: &'static str, values: &[T]) -> Result<Vec<T>> {
    let mut all = with_capacity(what, values.len())?;
    all.extend_from_slice(values);
    Ok(all)
}

/// Returns the number that follows `name` at the start of a line.
fn field(text: &str, name: &str) -> Option<usize> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn read_number(path: &Path) -> Option<usize> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn unreadable(path: &str, source: io::Error) -> Error {
    Error::Os { call: "read", what: path.to_owned(), source, remedy: "mount /proc" }
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn fields_are_found_by_whole_name() {
        let text = "MemFree:  7 kB\nMemAvailable:   24368244 kB\ninactive_file 12\n";
        assert_eq!(field(text, "MemAvailable:"), Some(24_368_244));
        assert_eq!(field(text, "inactive_file"), Some(12));
        assert_eq!(field(text, "Mem"), None);
    }
}
