//! Files without a name in a folder that lies on a disk.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use avsg::Error;
use rustix::fs::{Advice, OFlags, fadvise, statfs};

/// File systems that keep their files in memory: the numbers of tmpfs and ramfs (`statfs(2)`).
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// A folder on a file system that is not in memory.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Checks the folder that `option` names, or takes the first of the system's temporary folder and
    /// `/var/tmp` that lies on a disk.
    ///
    /// # Errors
    /// If the folder cannot be read or lies in memory.
    pub fn find(option: &'static str, folder: Option<&Path>) -> Result<Self> {
        let usual = [std::env::temp_dir(), PathBuf::from("/var/tmp")];
        let chosen = match folder {
            Some(folder) => folder,
            None => usual.iter().find(|f| in_memory(f).is_ok_and(|yes| !yes)).unwrap_or(&usual[0]),
        };
        let remedy = "pass a folder on a disk";
        if in_memory(chosen).with_context(|| format!("{option} {}", chosen.display()))? {
            let limit = "it must be on a disk, and this file system is in memory";
            return Err(Error::invalid(option, chosen.display(), limit, remedy).into());
        }
        Ok(Self(chosen.to_owned()))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates a file without a name, which is gone when nobody has it open any more, also after a
    /// signal.
    pub fn unnamed_file(&self) -> Result<File> {
        let context = || format!("creating a file in {}", self.0.display());
        tempfile::tempfile_in(&self.0).with_context(context)
    }
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

/// Writes what the page cache has of a file to the disk, and drops it from the page cache.
pub fn drop_from_page_cache(file: &File) -> Result<()> {
    file.sync_all().context("writing a file to the disk")?;
    fadvise(file, 0, None, Advice::DontNeed).context("dropping a file from the page cache")
}
