//! A pool in a file: its configuration, and the calls on a file that is kept.

use std::ffi::c_char;
use std::time::Duration;

use crate::handle;
use crate::indexers::indexers;
use crate::pool::{Pool, avsg_pool};
use crate::sized;
use crate::status::{Result, avsg_status, choice, enter};
use avsg::disk::PoolFile;
use avsg::pool::{HostPool, PoolConfig};

/// The file or the block device of a pool whose rows are on a disk (`avsg_pool_config.file`). It has its full
/// size at once. The first transfer of a plan in the layers of an indexer reads the missing rows of all these
/// layers, and an append returns before its rows are written. Each row has a checksum of 8 bytes in the file.
/// One that is not whole, because it was never written, was lost with a process, is damaged or was cut off,
/// is AVSG_LOST_ROWS for avsg_pool_read_row and for a transfer. Not for engines on an Ascend device;
/// AVSG_INVALID with a layout, with an allocator, with AVSG_PAGES_HUGE_1G, and for avsg_pool_get_row and
/// avsg_pool_export. `chunk_bytes` and other `pages` are ignored.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_pool_file {
    /// sizeof(avsg_pool_file).
    pub size: usize,
    /// A folder of a private file, which has no name; with `keep` that of a new file; or a block device.
    pub path: *const c_char,
    /// The indexer of each layer, as every engine on the pool has them; NULL: one for all.
    pub layer_indexer: *const u32,
    /// Elements of `layer_indexer`: the pool's layers, or 0 with NULL.
    pub layer_indexers: usize,
    /// Bytes of the queue of writes; 0: 8 MiB.
    pub queue_bytes: usize,
    /// Milliseconds without a read or write that ends, after which a call fails; 0: 30000.
    pub timeout_ms: u64,
    /// 1: the file stays when the pool ends, for `avsg_pool_open`.
    pub keep: i32,
    /// 1: through the page cache; 0: past it, with O_DIRECT.
    pub buffered: i32,
}

impl avsg_pool_file {
    /// Returns the file that the struct describes.
    ///
    /// # Safety
    /// `path` is NULL or a NUL-terminated string.
    pub(crate) unsafe fn file(&self) -> Result<PoolFile> {
        let path = contract!(sized::path(self.path)).ok_or_else(|| sized::null_error("path"))?;
        let defaults = PoolFile::new(path);
        let given = (self.timeout_ms != 0).then(|| Duration::from_millis(self.timeout_ms));
        let timeout = given.unwrap_or(defaults.timeout);
        let queue_bytes =
            if self.queue_bytes == 0 { defaults.queue_bytes } else { self.queue_bytes };
        let keep = choice("keep", self.keep, &[false, true])?;
        let buffered = choice("buffered", self.buffered, &[false, true])?;
        Ok(PoolFile { keep, buffered, queue_bytes, timeout, ..defaults })
    }
}

/// Puts the rows of a pool into a file; NULL leaves them in memory.
///
/// # Safety
/// `file` is NULL or valid for reads of the number of bytes in its `size`, its path is NULL or a
/// NUL-terminated string, and its array is NULL or valid for reads of its length.
pub(crate) unsafe fn in_file(pool: PoolConfig, file: *const avsg_pool_file) -> Result<PoolConfig> {
    if file.is_null() {
        return Ok(pool);
    }
    let file = contract!(sized::read(file))?;
    let indexers = contract!(indexers(file.layer_indexer, file.layer_indexers, pool.layers))?;
    Ok(PoolConfig { file: Some(contract!(file.file())?), indexers, ..pool })
}

/// Opens the file of a pool that was kept, and makes this process its only writer. The file tells the pool's
/// geometry and the indexers of its layers: `keep` and `layer_indexer` are ignored. Each row is as a flush
/// left it or as a later write did, or AVSG_LOST_ROWS when it is read; one that was flushed and not written
/// since is as the flush left it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_open(
    file: *const avsg_pool_file,
    pool: *mut *mut avsg_pool,
) -> avsg_status {
    let make = || {
        let file = contract!(sized::read(file))?;
        let file = PoolFile { keep: true, ..contract!(file.file())? };
        let config = PoolConfig::stored_in(&file)?;
        Ok(Pool::new(HostPool::open(&config)?))
    };
    contract!(handle::give(pool, make))
}

/// Makes the rows of a pool's file durable. It waits for the disk; once the disk has refused to make bytes
/// durable (`fdatasync`), every later call fails. A pool in memory has nothing to flush.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_pool_flush(pool: *const avsg_pool) -> avsg_status {
    enter(|| Ok(handle::shared::<Pool>(pool)?.host.flush()?))
}
