//! A limit of the page cache that a mapped file has: an exact LRU of pages, of which the evicted ones are
//! dropped after each step, or a memory control group around the process that maps the file.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use lru::LruCache;

/// What the kernel itself may take of a control group's memory beside the page cache: page tables, the
/// tree of cached pages, and charges that each CPU holds in advance.
const KERNEL_BYTES: usize = 1 << 20;

/// How the page cache of a mapped file is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LimitBy {
    /// An exact LRU of pages; posix_fadvise drops those that it evicts after each step
    Fadvise,
    /// A memory control group of version 1 or 2
    Cgroup,
}

impl LimitBy {
    /// Returns the word of the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fadvise => "fadvise",
            Self::Cgroup => "cgroup",
        }
    }
}

/// The limit that is in force in this process.
pub enum Limit {
    Pages(LruCache<usize, ()>),
    Cgroup(Group),
}

impl Limit {
    /// Limits the page cache of this process to `bytes` bytes.
    ///
    /// # Errors
    /// If no control group can be made.
    pub fn new(by: LimitBy, bytes: usize, page: usize) -> Result<Self> {
        let pages = NonZeroUsize::new(bytes / page).unwrap_or(NonZeroUsize::MIN);
        match by {
            LimitBy::Fadvise => Ok(Self::Pages(LruCache::new(pages))),
            LimitBy::Cgroup => Ok(Self::Cgroup(Group::enter(bytes)?)),
        }
    }

    /// Returns what limits the page cache in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Pages(_) => "an exact LRU of pages, by posix_fadvise after each step".to_owned(),
            Self::Cgroup(group) => {
                format!("a memory control group of version {}", group.version.number)
            }
        }
    }

    /// Returns the folder of the control group, if there is one.
    pub fn folder(&self) -> Option<PathBuf> {
        match self {
            Self::Pages(_) => None,
            Self::Cgroup(group) => Some(group.folder.clone()),
        }
    }

    /// Counts the pages of a step as used, and returns those that have to be dropped. Cached pages of the step
    /// count as used first, so that none of them is dropped for another page of the step if all of them fit.
    pub fn use_pages(&mut self, pages: impl Iterator<Item = usize> + Clone) -> Vec<usize> {
        let Self::Pages(cache) = self else { return Vec::new() };
        pages.clone().for_each(|page| _ = cache.promote(&page));
        let evicted = |page| cache.push(page, ()).map(|(old, ())| old).filter(|&old| old != page);
        pages.filter_map(evicted).collect()
    }
}

/// The files of one version of control groups.
struct Version {
    number: u8,
    /// The type of its mounts.
    kind: &'static str,
    limit: &'static str,
}

const VERSIONS: [Version; 2] = [
    Version { number: 1, kind: "cgroup", limit: "memory.limit_in_bytes" },
    Version { number: 2, kind: "cgroup2", limit: "memory.max" },
];

/// A memory control group of this process alone, which is removed when it is dropped.
pub struct Group {
    version: &'static Version,
    folder: PathBuf,
    /// The group in which the process was before.
    before: PathBuf,
}

impl Group {
    /// Makes a group whose memory is limited to `bytes` bytes and what the kernel needs, and moves this
    /// process there. Memory that the process has already is not counted.
    fn enter(bytes: usize) -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let groups = fs::read_to_string("/proc/self/cgroup")?;
        let mut fault = None;
        for version in &VERSIONS {
            let Some(before) = version.own_group(&mounts, &groups) else { continue };
            match Self::make(version, &before, bytes) {
                Ok(group) => return Ok(group),
                Err(error) => fault = Some(error),
            }
        }
        let error = fault.unwrap_or_else(|| io::ErrorKind::NotFound.into());
        Err(error).context("making a memory control group")
    }

    fn make(version: &'static Version, before: &Path, bytes: usize) -> io::Result<Self> {
        // In version 2 a group with processes has no groups with a limit below it, except for the root.
        let beside = before.parent().filter(|parent| parent.join(version.limit).exists());
        let parent = if version.number == 2 { beside.unwrap_or(before) } else { before };
        let folder = parent.join(format!("avsg-bench-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let group = Self { version, folder, before: before.to_owned() };
        fs::write(group.folder.join(version.limit), (bytes + KERNEL_BYTES).to_string())?;
        join(&group.folder)?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // If this fails, the parent removes the folder.
        let _ = join(&self.before).and_then(|()| fs::remove_dir(&self.folder));
    }
}

/// Moves this process to a group.
fn join(folder: &Path) -> io::Result<()> {
    fs::write(folder.join("cgroup.procs"), std::process::id().to_string())
}

impl Version {
    /// Returns the folder of this process's memory group from the texts of `/proc/self/mountinfo` and
    /// `/proc/self/cgroup`.
    fn own_group(&self, mounts: &str, groups: &str) -> Option<PathBuf> {
        // A line is "id parent device root folder options.. - type source options".
        let mount = mounts.lines().find_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            let mut kind = kind.split(' ');
            let (name, options) = (kind.next()?, kind.nth(1)?);
            let memory = self.number == 2 || options.split(',').any(|option| option == "memory");
            (name == self.kind && memory).then(|| place.split(' ').nth(4)).flatten()
        })?;
        // A line is "number:controllers:path"; version 2 has number 0 and no controllers.
        let own = groups.lines().find_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let (controllers, own) = rest.split_once(':')?;
            let found = match self.number {
                1 => controllers.split(',').any(|name| name == "memory"),
                _ => number == "0" && controllers.is_empty(),
            };
            found.then_some(own)
        })?;
        Some(Path::new(mount).join(own.trim_start_matches('/')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_in_both_versions() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      31 23 0:27 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n\
                      32 23 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let groups = "4:cpu:/x\n3:hugetlb,memory:/a/b\n0::/c\n";
        let [first, second] = &VERSIONS;
        let place = |version: &Version, groups| version.own_group(mounts, groups);
        assert_eq!(place(first, groups), Some("/sys/fs/cgroup/memory/a/b".into()));
        assert_eq!(place(second, groups), Some("/sys/fs/cgroup/unified/c".into()));
        assert_eq!(place(first, "0::/c\n"), None);
        assert_eq!(place(second, "4:cpu:/x\n"), None);
    }

    #[test]
    fn pages_are_evicted_in_the_order_of_their_last_use() {
        let mut limit = Limit::new(LimitBy::Fadvise, 3 * 4096 + 1, 4096).unwrap();
        assert!(limit.use_pages([1, 2, 3].into_iter()).is_empty());
        assert_eq!(limit.use_pages([1, 4].into_iter()), [2]);
        assert_eq!(limit.use_pages([3, 5, 6].into_iter()), [1, 4]);
        // 3 is the oldest, but this step uses it.
        assert_eq!(limit.use_pages([2, 3].into_iter()), [5]);
    }
}
