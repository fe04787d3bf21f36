//! Folders of tests that need a file system with O_DIRECT, which /tmp often has not.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use avsg::disk::PoolFile;
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;

/// A folder beside the running test program, which is removed with what is in it.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes an empty folder.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let program = std::env::current_exe().expect("path of the program");
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = program.with_file_name(format!("scratch-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder beside the program");
        Self(folder)
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the number of files in the folder.
    pub fn count(&self) -> usize {
        std::fs::read_dir(&self.0).expect("the folder").count()
    }
}

/// Returns a pool's file with `buffered` where the file system has no O_DIRECT, and says so.
pub fn adapted(file: PoolFile) -> PoolFile {
    let folder = if file.path.is_dir() { Some(&*file.path) } else { file.path.parent() };
    let Some(folder) = folder.filter(|_| !file.buffered) else { return file };
    let config = PoolConfig::new(1, 1, RowFormat::single(1).expect("a row of one byte"));
    let made = HostPool::new(&PoolConfig { file: Some(PoolFile::new(folder)), ..config });
    let lacks = made.is_err_and(|error| error.to_string().contains("has no O_DIRECT"));
    if lacks {
        println!("buffered in place of direct: {} has no O_DIRECT", folder.display());
    }
    PoolFile { buffered: lacks, ..file }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
