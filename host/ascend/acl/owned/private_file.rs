//! Bytes as a file that nobody else can write, for as long as somebody needs a path.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, process};

use crate::{Error, Result};

/// A file in a folder of its own below the system's temporary one. Both are removed on drop.
#[derive(Debug)]
pub(super) struct PrivateFile {
    folder: PathBuf,
    file: PathBuf,
}

impl PrivateFile {
    /// Writes the bytes.
    ///
    /// # Errors
    /// If the system's temporary folder cannot be written.
    pub fn new(bytes: &[u8]) -> Result<Self> {
        let place = env::temp_dir();
        let refused = |source| Error::Os {
            call: "write",
            what: format!("a kernel of {} bytes in {}", bytes.len(), place.display()),
            source,
            remedy: "set TMPDIR to a folder that can be written",
        };
        let folder = std::path::absolute(&place).and_then(|at| folder_in(&at)).map_err(refused)?;
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
        // Nothing is lost but a little room if this fails, and nobody could do anything about it.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A new folder that only this user may enter. One that is there already is never taken: it may be another's.
fn folder_in(place: &Path) -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = place.join(format!("avsg-kernel-{}-{n}", process::id()));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
}
