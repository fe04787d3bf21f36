//! What a pool's file keeps: rows are flushed to it, and it is opened again.

use crate::contract::contract;
use crate::handle;
use crate::pool::{Pool, avsg_pool};
use crate::pool_file::avsg_pool_file;
use crate::sized;
use crate::status::{avsg_status, enter};
use avsg::disk::PoolFile;
use avsg::pool::{HostPool, PoolConfig};

/// Opens the file of a pool that was kept, and makes this process its only writer. The file tells the
/// pool's geometry and the indexers of its layers: `keep` and `layer_indexer` are ignored. Each row is as a flush
/// left it or as a later write did, or AVSG_INVALID when it is read; one that was flushed and not written since
/// is as the flush left it.
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
