//! Checks that memory is available before it is allocated.
//!
//! Linux grants mappings that it cannot back and kills a process later. So a size is compared with
//! what the machine, the control groups and the limits of this process can still give, and refused with an error
//! before anything is allocated.

mod groups;

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};

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
    let text = read_text(path).map_err(|source| unreadable(path, source))?;
    let machine =
        field(&text, "MemAvailable:").map(|kib| kib.saturating_mul(1024)).ok_or_else(|| {
            unreadable(path, io::Error::new(io::ErrorKind::InvalidData, "no MemAvailable line"))
        })?;
    let bytes = groups::available("").map_or(machine, |group| group.min(machine));
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

/// Returns an error if `bytes`, needed for `what`, exceed [`available`].
pub(crate) fn check(what: &'static str, bytes: usize) -> Result<()> {
    let available = available()?;
    if bytes <= available {
        return Ok(());
    }
    Err(Error::Memory { what, bytes, available })
}

/// Returns an error if `bytes` of address space, needed for `what`, exceed what the limits of this
/// process leave.
pub(crate) fn check_limits(what: &'static str, bytes: usize) -> Result<()> {
    match process_limit() {
        Some(available) if bytes > available => Err(Error::Memory { what, bytes, available }),
        _ => Ok(()),
    }
}

/// Returns the bytes of free, unreserved hugetlb pages of `page` bytes and of those that the kernel
/// may still make out of ordinary memory (`nr_overcommit_hugepages`).
pub(crate) fn hugetlb_bytes(page: usize) -> usize {
    let mut size = heapless::String::<24>::new();
    // This cannot fail: the text is shorter than the string may be.
    let _ = write!(size, "{}kB/", page / 1024);
    let read =
        |name| read_number(&["/sys/kernel/mm/hugepages/hugepages-", &size, name]).unwrap_or(0);
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

fn read_number(path: &[&str]) -> Option<usize> {
    read_parts(path).ok()?.trim().parse().ok()
}

/// Reads the small file whose path has these parts. Neither the path nor the text is on the stack, which
/// may be the smallest that a thread can have, and each lack of memory is an error.
fn read_parts(path: &[&str]) -> io::Result<String> {
    let mut whole = String::new();
    for part in path {
        whole.try_reserve(part.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        whole.push_str(part);
    }
    read_text(&whole)
}

/// Reads a small file. Unlike `fs::read_to_string` it returns an error for every lack of memory.
#[inline(never)]
fn read_text(path: &str) -> io::Result<String> {
    const PIECE: usize = 1024;
    let (mut file, mut text, mut len) = (File::open(path)?, Vec::new(), 0);
    loop {
        text.try_reserve(PIECE).map_err(|_| io::ErrorKind::OutOfMemory)?;
        text.resize(len + PIECE, 0);
        let n = match file.read(&mut text[len..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            n => n?,
        };
        len += n;
        if n == 0 {
            break;
        }
    }
    text.truncate(len);
    String::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData.into())
}

fn unreadable(path: &'static str, source: io::Error) -> Error {
    if source.kind() == io::ErrorKind::OutOfMemory {
        return Error::OutOfMemory { what: path, bytes: 1024 };
    }
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
