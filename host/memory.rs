//! Checks that memory is available before it is allocated.
//!
//! Linux grants mappings that it cannot back and kills a process later. So a size is compared with
//! what the machine and the control group of this process can still give, and refused with an error
//! before anything is allocated.

use std::{fs, io, path::Path};

use crate::{Error, Result};

/// The divisor of the available memory that gives the part left free, for page tables and other
/// processes.
const RESERVE_DIVISOR: usize = 32;

/// Returns the bytes that may be allocated: `MemAvailable`, or what the control group leaves if
/// that is less, minus 1/32 of it.
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
    let bytes = group_available().map_or(machine, |group| group.min(machine));
    Ok(bytes - bytes / RESERVE_DIVISOR)
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

/// Returns the bytes that the tightest limit of this process's control groups (version 2) leaves;
/// `None` if there is no limit. File cache counts as free, because the kernel drops it first.
fn group_available() -> Option<usize> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    // The limits of all parents bind, too.
    let folders = Path::new(own).ancestors().map(|part| root.join(part));
    folders.filter_map(|folder| limit_left(&folder)).min()
}

fn limit_left(folder: &Path) -> Option<usize> {
    let limit = read_number(&folder.join("memory.max"))?;
    let used = read_number(&folder.join("memory.current"))?;
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cache = field(&stat, "inactive_file").unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(cache)))
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
