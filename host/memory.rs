//! How much memory may be taken, asked before any of it is.
//!
//! Linux grants a mapping that it cannot back and kills a process later. So a size is compared with
//! what the machine, and the control group this process lives in, can still give, and refused in
//! words while nothing has been taken.

use std::{fs, io, path::Path};

use crate::{Error, Result};

/// Share of the available memory that is left alone: page tables and everybody else's next minute.
const KEEP: usize = 32;

/// Bytes that may be taken now: `MemAvailable`, or what the control group leaves if that is less,
/// less 1/32 of it.
pub fn available() -> Result<usize> {
    let path = "/proc/meminfo";
    let text = fs::read_to_string(path).map_err(|source| unreadable(path, source))?;
    let machine =
        field(&text, "MemAvailable:").map(|kib| kib.saturating_mul(1024)).ok_or_else(|| {
            unreadable(path, io::Error::new(io::ErrorKind::InvalidData, "no MemAvailable line"))
        })?;
    let bytes = group_available().map_or(machine, |group| group.min(machine));
    Ok(bytes - bytes / KEEP)
}

/// Refuses `bytes` for `what` when they exceed [`available`].
pub(crate) fn check(what: &'static str, bytes: usize) -> Result<()> {
    let available = available()?;
    if bytes <= available {
        return Ok(());
    }
    Err(Error::Memory { what, bytes, available })
}

/// Free hugetlb pages of `page` bytes that nobody has reserved, and pages that the kernel may still
/// make on demand out of ordinary memory.
pub(crate) fn hugetlb_bytes(page: usize) -> usize {
    let folder = format!("/sys/kernel/mm/hugepages/hugepages-{}kB", page / 1024);
    let read = |name: &str| number(&Path::new(&folder).join(name)).unwrap_or(0);
    let free = read("free_hugepages").saturating_sub(read("resv_hugepages"));
    let more = read("nr_overcommit_hugepages").saturating_sub(read("surplus_hugepages"));
    let ordinary = if more == 0 { 0 } else { available().unwrap_or(0) / page };
    free.saturating_add(more.min(ordinary)).saturating_mul(page)
}

/// What the innermost limited control group (version 2) leaves; None where no limit is found. File
/// cache counts as free, because the kernel drops it first.
fn group_available() -> Option<usize> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    // A parent's limit binds as well, so the tightest one up to the root counts.
    let folders = Path::new(own).ancestors().map(|part| root.join(part));
    folders.filter_map(|folder| limit_left(&folder)).min()
}

fn limit_left(folder: &Path) -> Option<usize> {
    let limit = number(&folder.join("memory.max"))?;
    let used = number(&folder.join("memory.current"))?;
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cache = field(&stat, "inactive_file").unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(cache)))
}

/// The number after `name` at the start of a line.
fn field(text: &str, name: &str) -> Option<usize> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn number(path: &Path) -> Option<usize> {
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
