//! Random pools in files: private ones, and ones that are kept, closed and opened again. Some of their rows
//! are not written at first.

use std::ffi::CString;
use std::ptr::{null, null_mut};

use avsg_capi::*;
use avsg_capi_testkit::device::c_path;
use avsg_capi_testkit::*;

use super::random_caller::RandomCaller;
use super::shared_handles::remove;

/// The file of a pool, which points to the other fields.
pub(super) struct RandomFile {
    pub file: avsg_pool_file,
    path: CString,
    indexers: Box<[u32; 2]>,
}

impl RandomFile {
    /// Returns the number of indexers of the pool's layers.
    pub(super) fn indexers(&self) -> usize {
        if self.file.layer_indexers == 0 { 1 } else { 1 + self.indexers[1] as usize }
    }

    /// Removes the name of a kept file. What has it open keeps it.
    pub(super) fn remove(&self) {
        if self.file.keep == 1 {
            remove(&self.path);
        }
    }
}

impl RandomCaller<'_> {
    /// Returns the description of a file, which may have a mistake.
    pub(super) fn file(&mut self) -> RandomFile {
        let mut path = self.shared.folder.path().to_owned();
        let mut file: avsg_pool_file = sized();
        (file.keep, file.buffered) = (self.below(2) as i32, self.shared.buffered.into());
        file.queue_bytes = [0, 1, 9000][self.below(3)];
        file.layer_indexers = [0, 2][self.below(2)];
        let mut indexers = Box::new([0, self.below(2) as u32]);
        if self.mistake(8) {
            let word = self.word();
            match self.below(6) {
                0 => file.keep = word as i32,
                1 => file.buffered = word as i32,
                2 => file.layer_indexers = word as usize % 3,
                3 => indexers[1] = word as u32,
                4 => path.push("no folder"),
                _ => file.size = word as usize % 80,
            }
        }
        if file.keep == 1 {
            path.push(format!("{:x}", self.word()));
        }
        let path = c_path(&path);
        file.path = path.as_ptr();
        file.layer_indexer = if file.layer_indexers == 0 { null() } else { indexers.as_ptr() };
        RandomFile { file, path, indexers }
    }

    /// Flushes and destroys a pool in a file that is kept, opens the file, and removes its name.
    pub(super) fn open_again(&mut self, pool: *mut avsg_pool, file: &RandomFile) -> *mut avsg_pool {
        if file.file.keep == 0 {
            return pool;
        }
        self.expect(avsg_pool_flush(pool));
        self.expect(avsg_pool_destroy(pool));
        let mut opened = null_mut();
        // SAFETY: the struct has its `size` set, and `file` owns what it points to.
        self.expect(unsafe { avsg_pool_open(&file.file, &mut opened) });
        file.remove();
        opened
    }
}
