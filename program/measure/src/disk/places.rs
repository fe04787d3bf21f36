//! Folders on a disk, files without a name in them, and where the rows of a deployment would be in a file.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use avsg::disk::{Layout, Shape};
use avsg::indexers::Indexers;
use avsg::rows::RowFormat;
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

/// Returns the layout of a file with blocks of `block` bytes, in which `indexers` indexers
/// share the layers evenly.
///
/// # Errors
/// If a number is out of range.
pub fn layout(
    [layers, indexers, rows]: [usize; 3],
    format: &RowFormat,
    block: usize,
) -> Result<Layout> {
    let of_layer: Vec<usize> = (0..layers).map(|layer| layer * indexers / layers).collect();
    let indexers = Indexers::of_layers(&of_layer)?;
    let shape = Shape { layers, rows, format: format.clone(), indexers };
    Ok(Layout::new(&shape, block, 0)?)
}
