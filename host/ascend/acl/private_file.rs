//! A temporary file that no other user can write, for calls of the runtime that take a path.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, process};

use crate::{Error, Result};

/// A file in a new folder below the system's temporary folder. Both are removed on drop.
#[derive(Debug)]
pub(super) struct PrivateFile {
    folder: PathBuf,
    file: PathBuf,
}

impl PrivateFile {
    /// Writes `bytes` to a new file.
    ///
    /// # Errors
    /// If the system's temporary folder cannot be written.
    pub fn new(bytes: &[u8]) -> Result<Self> {
        let parent = env::temp_dir();
        let refused = |source| Error::Os {
            call: "write",
            what: format!("a kernel of {} bytes in {}", bytes.len(), parent.display()),
            source,
            remedy: "set TMPDIR to a folder that can be written",
        };
        let folder = std::path::absolute(&parent).and_then(|at| folder_in(&at)).map_err(refused)?;
        let made = Self { file: folder.join("kernel.o"), folder };
        fs::write(&made.file, bytes).map_err(refused)?;
        Ok(made)
    }

    pub fn path(&self) -> &Path {
        &self.file
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // An error is ignored: it leaves only a small file behind.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Makes a new folder that only this user may enter. An existing folder is never used, because it
/// may belong to another user.
fn folder_in(parent: &Path) -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("avsg-kernel-{}-{n}", process::id()));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
}
