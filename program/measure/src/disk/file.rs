//! Folders on a disk, and files without a name in them.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{OFlags, statfs};

use crate::checks::require;

/// File systems that keep their files in memory: the numbers of tmpfs and ramfs (`statfs(2)`).
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Checks that the folder that `option` names is not in memory, or takes the first of the system's temporary
/// folder and `/var/tmp` that is not.
///
/// # Errors
/// If the folder cannot be read or lies in memory.
pub fn folder_on_disk(option: &'static str, folder: Option<&Path>) -> Result<PathBuf> {
    let usual = [std::env::temp_dir(), PathBuf::from("/var/tmp")];
    let chosen = match folder {
        Some(folder) => folder,
        None => usual.iter().find(|f| in_memory(f).is_ok_and(|yes| !yes)).unwrap_or(&usual[0]),
    };
    let in_memory = in_memory(chosen).with_context(|| format!("{option} {}", chosen.display()))?;
    let limit = "it must be on a disk, and this file system is in memory";
    require(!in_memory, option, chosen.display(), limit, "pass a folder on a disk")?;
    Ok(chosen.to_owned())
}

fn in_memory(folder: &Path) -> std::io::Result<bool> {
    Ok(IN_MEMORY.contains(&(statfs(folder)?.f_type as u64)))
}

/// Returns a path of an open file, also of one without a name, for this process and its children.
pub fn path_in_proc(file: &File) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
}

/// Opens a file once more for reads that go past the page cache.
pub fn direct(file: &File) -> Result<File> {
    let flags = OFlags::DIRECT.bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path_in_proc(file));
    opened.context("opening a file with O_DIRECT, which its file system may not support")
}
