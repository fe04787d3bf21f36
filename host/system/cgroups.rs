//! What the control groups of this process leave of the memory and of the CPUs.

use std::path::Path;

use crate::system::files::{field, number, read_parts};

/// Returns the text of a file of a group.
type Read<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Returns the bytes that the tightest limit of this process's control groups leaves; `None` if
/// there is none. `root` is the folder that stands for the root of the file system, or empty.
pub fn memory(root: &str) -> Option<usize> {
    least(root, "memory", |unified, read| {
        let (limit, used, cache) = if unified {
            ("memory.max", "memory.current", ["inactive_file", "active_file"])
        } else {
            let cache = ["total_inactive_file", "total_active_file"];
            ("memory.limit_in_bytes", "memory.usage_in_bytes", cache)
        };
        let (limit, used) = (number(&read(limit)?)?, number(&read(used)?)?);
        let stat = read("memory.stat").unwrap_or_default();
        // The kernel drops the file cache, also the active one, before it refuses memory.
        let cache = cache.iter().filter_map(|name| field(&stat, name));
        let cache = cache.fold(0, usize::saturating_add);
        // A group that uses more than its limit does not tell the truth.
        limit.checked_sub(used.saturating_sub(cache))
    })
}

/// Returns the whole CPUs, at least 1, that the quotas of this process's control groups pay for; `None`
/// if there is none.
pub fn cpus(root: &str) -> Option<usize> {
    least(root, "cpu", |unified, read| {
        let (quota, period) = if unified {
            let text = read("cpu.max")?;
            let (quota, period) = text.split_once(' ')?;
            (number(quota)?, number(period)?)
        } else {
            (number(&read("cpu.cfs_quota_us")?)?, number(&read("cpu.cfs_period_us")?)?)
        };
        quota.checked_div(period).map(|cpus| cpus.max(1))
    })
}

/// Returns the least that the groups of this process have of what a controller limits. `left` is told whether a group
/// is one of version 2.
fn least(
    root: &str,
    controller: &str,
    left: impl Fn(bool, &Read<'_>) -> Option<usize>,
) -> Option<usize> {
    let groups = read_parts(&[root, "/proc/self/cgroup"]).ok()?;
    let mounts = read_parts(&[root, "/proc/self/mountinfo"]).ok()?;
    let has = |list: &str| list.split(',').any(|name| name == controller);
    // A line is "number:controllers:path"; version 2 has number 0 and no controllers.
    let of_line = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, own) = rest.split_once(':')?;
        let unified = number == "0" && controllers.is_empty();
        let mount = mount(&mounts, unified, has).filter(|_| unified || has(controllers))?;
        // The limits of all parents bind, too. In a container the path may be one of the host, of
        // which the mount shows the end or nothing, so its own folder counts in any case.
        let parents = Path::new(own.trim_start_matches('/')).ancestors();
        let of_part = |part: &Path| {
            let part = part.to_str()?;
            left(unified, &|name| read_parts(&[root, mount, "/", part, "/", name]).ok())
        };
        parents.filter_map(of_part).min()
    };
    groups.lines().filter_map(of_line).min()
}

/// Returns the folder where the groups of a version are mounted. A line of `mountinfo` is "id parent device
/// root folder options.. - type source options".
fn mount(mounts: &str, unified: bool, has: impl Fn(&str) -> bool) -> Option<&str> {
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let found = match (kind.next()?, kind.nth(1)?) {
            ("cgroup2", _) => unified,
            ("cgroup", options) => !unified && has(options),
            _ => false,
        };
        found.then(|| place.split(' ').nth(4)).flatten()
    })
}

#[cfg(test)]
mod tests;
