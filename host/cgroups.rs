//! What the control groups of this process leave of the memory.

use std::path::Path;

use crate::system_files::{field, read_number, read_parts};

/// The files of one version of control groups.
struct Version {
    mounted_as: &'static str,
    limit: &'static str,
    used: &'static str,
    /// The line of `memory.stat` with the file cache that the kernel drops first.
    cache: &'static str,
}

const V1: Version = Version {
    mounted_as: "cgroup",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cache: "total_inactive_file",
};
const V2: Version = Version {
    mounted_as: "cgroup2",
    limit: "memory.max",
    used: "memory.current",
    cache: "inactive_file",
};

/// Returns the bytes that the tightest limit of this process's control groups leaves; `None` if
/// there is no limit. `root` is the folder that stands for the root of the file system, or empty.
pub fn available(root: &str) -> Option<usize> {
    let groups = read_parts(&[root, "/proc/self/cgroup"]).ok()?;
    let mounts = read_parts(&[root, "/proc/self/mountinfo"]).ok()?;
    // A line is "number:controllers:path"; version 2 has number 0 and no controllers.
    let of_line = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, own) = rest.split_once(':')?;
        let version = match controllers {
            "" if number == "0" => V2,
            list if list.split(',').any(|name| name == "memory") => V1,
            _ => return None,
        };
        version.available(root, &mounts, own)
    };
    groups.lines().filter_map(of_line).min()
}

impl Version {
    fn available(&self, root: &str, mounts: &str, own: &str) -> Option<usize> {
        let mount = self.mount(mounts)?;
        // The limits of all parents bind, too. In a container the path may be one of the host, of
        // which the mount shows the end or nothing, so its own folder counts in any case.
        let parents = Path::new(own.trim_start_matches('/')).ancestors();
        parents.filter_map(|part| self.left(&[root, mount, "/", part.to_str()?, "/"])).min()
    }

    /// Returns the folder where the groups are mounted. A line of `mountinfo` is "id parent
    /// device root folder options.. - type source options".
    fn mount<'m>(&self, mounts: &'m str) -> Option<&'m str> {
        mounts.lines().find_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            let mut kind = kind.split(' ');
            let (name, options) = (kind.next()?, kind.nth(1)?);
            let memory = name == "cgroup2" || options.split(',').any(|option| option == "memory");
            let found = name == self.mounted_as && memory;
            found.then(|| place.split(' ').nth(4)).flatten()
        })
    }

    fn left(&self, folder: &[&str; 5]) -> Option<usize> {
        let [root, mount, slash, part, end] = *folder;
        let file = |name| [root, mount, slash, part, end, name];
        let limit = read_number(&file(self.limit))?;
        let used = read_number(&file(self.used))?;
        let cache = read_parts(&file("memory.stat")).ok();
        let cache = cache.and_then(|stat| field(&stat, self.cache)).unwrap_or(0);
        Some(limit.saturating_sub(used.saturating_sub(cache)))
    }
}

#[cfg(test)]
mod tests;
