//! The handle of a host pool.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::allocator::{allocator, avsg_allocator};
use crate::boundary::{OutPtr, enter};
use crate::handle::Object;
use crate::layout::{avsg_pool_layout, in_layout};
use crate::segments::AVSG_MAX_SEGMENTS;
use crate::status::{Result, avsg_status, check_reserved, choice, ensure};
use crate::{boundary, handle};
use avsg::ascend::RegisteredPool;
use avsg::ascend::acl::Context;
use avsg::disk::{PoolFile, PoolSessions};
use avsg::engine::Indexers;
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows;
use avsg::rows::{MAX_SEGMENTS, RowFormat, Segment};

/// A host pool: every row of every layer.
pub struct avsg_pool;

/// The object of a pool's handle.
pub(crate) struct Pool {
    /// The pool, which its engines share.
    pub host: Arc<HostPool>,
    /// The pool's registrations with devices, which its engines share per device.
    registrations: Mutex<Vec<Weak<RegisteredPool>>>,
}

impl Object for Pool {
    type C = avsg_pool;
    const KIND: u64 = 1;
    const NAME: &'static str = "pool";
    type Fixed = ();

    fn fixed(&self) {}
}

impl Pool {
    /// Returns the pool registered with a device. `same_device` recognises an existing
    /// registration, and `open` opens the device for a new one.
    pub fn registered(
        &self,
        same_device: impl Fn(&Context) -> bool,
        open: impl FnOnce() -> avsg::Result<Arc<Context>>,
    ) -> avsg::Result<Arc<RegisteredPool>> {
        let mut all = self.registrations.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.upgrade().is_some());
        let mut known = all.iter().filter_map(Weak::upgrade);
        if let Some(known) = known.find(|known| same_device(known.context())) {
            return Ok(known);
        }
        let new = RegisteredPool::new(&open()?, Arc::clone(&self.host))?;
        all.push(Arc::downgrade(&new));
        Ok(new)
    }

    pub fn new(pool: HostPool) -> Self {
        Self { host: Arc::new(pool), registrations: Mutex::default() }
    }
}

/// Destroys the handle of a pool, whose memory lasts until every engine on it is destroyed.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_pool_destroy(pool: *mut avsg_pool) -> avsg_status {
    enter(|| handle::destroy::<Pool>(pool))
}

/// The configuration of a pool. A row of BF16 MLA is one segment of 1152 bytes, or two of 1024 and
/// 128. The device buffer and fresh rows have the strides of the pool.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_pool_config {
    /// sizeof(avsg_pool_config).
    pub size: usize,
    /// The number of layers.
    pub layers: usize,
    /// Rows of each layer.
    pub rows: usize,
    /// Segments of a row, its contiguous parts: 1 to 4.
    pub segments: usize,
    /// Bytes of each segment.
    pub segment_bytes: [usize; AVSG_MAX_SEGMENTS],
    /// Bytes from a row to the next; 0: `segment_bytes`.
    pub segment_stride: [usize; AVSG_MAX_SEGMENTS],
    /// Most bytes of a chunk, which a device registers; 0: 64 MiB, SIZE_MAX: any.
    pub chunk_bytes: usize,
    /// An `avsg_pages`; ignored with a layout, an allocator or a file, which refuses those of 1 GiB.
    pub pages: i32,
    /// Must be 0.
    pub reserved: u32,
    /// NULL, or the caller's memory (Part 3).
    pub layout: *const avsg_pool_layout,
    /// NULL, or the allocator of each chunk (Part 3).
    pub allocator: *const avsg_allocator,
    /// NULL, or the file that has the rows (Part 3).
    pub file: *const avsg_pool_file,
}

/// Reads the configuration of a pool.
///
/// # Safety
/// `config` is NULL or valid for reads of the number of bytes in its `size`, its allocator is as
/// [`allocator`] demands, its file as [`in_file`] does, and its layout as [`in_layout`] does.
pub(crate) unsafe fn pool_config(config: *const avsg_pool_config) -> Result<PoolConfig> {
    let config = contract!(boundary::read(config))?;
    let count = config.segments;
    ensure!(
        count <= MAX_SEGMENTS,
        "segments is {count}, but a row has 1 to {MAX_SEGMENTS}; merge adjacent ones"
    );
    check_reserved(config.reserved)?;
    let sizes = config.segment_bytes.iter().zip(&config.segment_stride);
    let segments: heapless::Vec<Segment, MAX_SEGMENTS> = sizes
        .take(count)
        .map(|(&bytes, &stride)| Segment {
            bytes,
            stride: if stride == 0 { bytes } else { stride },
        })
        .collect();
    let pages = [Pages::Huge2M, Pages::Huge1G, Pages::Huge2M, Pages::Thp, Pages::Plain];
    let pages = choice("pages", config.pages, &pages)?;
    let defaults = PoolConfig::new(config.layers, config.rows, RowFormat::strided(&segments)?);
    let chunk_bytes =
        if config.chunk_bytes == 0 { defaults.chunk_bytes } else { config.chunk_bytes };
    let allocator = contract!(allocator(config.allocator))?;
    let in_memory = PoolConfig { chunk_bytes, pages, allocator, ..defaults };
    contract!(in_layout(in_file(in_memory, config.file)?, config.layout))
}

/// Creates a pool of which this process is the writer: in zeroed memory, by a layout, or in a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_create(
    config: *const avsg_pool_config,
    pool: *mut *mut avsg_pool,
) -> avsg_status {
    let make = || Ok(Pool::new(HostPool::new(&contract!(pool_config(config))?)?));
    contract!(handle::give(pool, make))
}

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
    /// Bytes of the queue of writes, at most 256 MiB; 0: those of 1024 records with their padding, at least 8 MiB. Rows
    /// that are written layer by layer want room for the records of all tokens of such a pass: a record that leaves the
    /// queue without some layers is read again for them.
    pub queue_bytes: usize,
    /// Milliseconds without a read or write that ends, after which a call fails; 0: 30000.
    pub timeout_ms: u64,
    /// 1: the file stays when the pool ends, for `avsg_pool_open`.
    pub keep: i32,
    /// 1: through the page cache; 0: past it, with O_DIRECT.
    pub buffered: i32,
    /// The number of sessions of a kept file (`avsg_session`); 0: none. avsg_pool_open ignores this field and those
    /// behind it, because the file tells them (`avsg_pool_info`).
    pub sessions: usize,
    /// Rows of the blocks of a session, as `page` of the engine.
    pub session_rows: usize,
    /// The most bytes of the caller for each session.
    pub session_bytes: usize,
    /// Bytes of the caller for each token (avsg_pool_write_tokens); 0: none.
    pub token_bytes: usize,
}

impl avsg_pool_file {
    /// Returns the file that the struct describes.
    ///
    /// # Safety
    /// `path` is NULL or a NUL-terminated string.
    pub(crate) unsafe fn file(&self) -> Result<PoolFile> {
        let path =
            contract!(boundary::path(self.path)).ok_or_else(|| boundary::null_error("path"))?;
        let defaults = PoolFile::new(path);
        let given = (self.timeout_ms != 0).then(|| Duration::from_millis(self.timeout_ms));
        let timeout = given.unwrap_or(defaults.timeout);
        let queue_bytes = self.queue_bytes;
        let keep = choice("keep", self.keep, &[false, true])?;
        let buffered = choice("buffered", self.buffered, &[false, true])?;
        let sessions = PoolSessions {
            count: self.sessions,
            rows: self.session_rows,
            bytes: self.session_bytes,
            token_bytes: self.token_bytes,
        };
        Ok(PoolFile { keep, buffered, queue_bytes, timeout, sessions, ..defaults })
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
    let file = contract!(boundary::read(file))?;
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
        let file = contract!(boundary::read(file))?;
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

/// Writes a row from `data`, which has its segments one after another. The caller must not write a row
/// while another thread writes it or an engine copies it; another read may get a mix of old and new bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_write_row(
    pool: *const avsg_pool,
    layer: usize,
    row: usize,
    data: *const c_void,
    bytes: usize,
) -> avsg_status {
    enter(|| {
        let pool = handle::shared::<Pool>(pool)?;
        let data = contract!(boundary::array::<u8>("data", data.cast(), bytes)?);
        Ok(pool.host.write_row(layer, row, data)?)
    })
}

/// Copies a row to `data`, with its segments one after another. AVSG_LOST_ROWS if it is not whole in the file
/// of the pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_read_row(
    pool: *const avsg_pool,
    layer: usize,
    row: usize,
    data: *mut c_void,
    bytes: usize,
) -> avsg_status {
    enter(|| {
        let pool = handle::shared::<Pool>(pool)?;
        let data = contract!(boundary::array_mut::<u8>("data", data.cast(), bytes)?);
        Ok(pool.host.read_row(layer, row, data)?)
    })
}

/// Writes the rows from row `first` on of `count` layers, whose shape in `data` is [count][rows][bytes of a
/// row]: the segments of a row one after another. `bytes` tells the number of rows. It costs one call for all
/// rows; those of a file are written by large operations, and each record once if the list has all layers of an
/// indexer, or if the records fit `queue_bytes` until all of their layers are written. After AVSG_OS the rows
/// of the file that were not taken are not whole: repeat the call. Otherwise as avsg_pool_write_row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_write_rows(
    pool: *const avsg_pool,
    layers: *const usize,
    count: usize,
    first: usize,
    data: *const c_void,
    bytes: usize,
) -> avsg_status {
    enter(|| {
        let pool = handle::shared::<Pool>(pool)?;
        let layers = contract!(boundary::array("layers", layers, count)?);
        let data = contract!(boundary::array::<u8>("data", data.cast(), bytes)?);
        Ok(pool.host.write_rows(layers, first, data)?)
    })
}

/// Copies the rows from row `first` on of `count` layers to `data`, in the shape that avsg_pool_write_rows takes.
/// Neighbours in a file are read by large operations. AVSG_LOST_ROWS, with `data` undefined, if a row is not
/// whole in the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_read_rows(
    pool: *const avsg_pool,
    layers: *const usize,
    count: usize,
    first: usize,
    data: *mut c_void,
    bytes: usize,
) -> avsg_status {
    enter(|| {
        let pool = handle::shared::<Pool>(pool)?;
        let layers = contract!(boundary::array("layers", layers, count)?);
        let data = contract!(boundary::array_mut::<u8>("data", data.cast(), bytes)?);
        Ok(pool.host.read_rows(layers, first, data)?)
    })
}

/// Gives the address of a segment of a row, for reads and, in the pool's writer, writes in place
/// while no other thread or process writes the row. A reader's memory is mapped without writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_get_row(
    pool: *const avsg_pool,
    layer: usize,
    segment: usize,
    row: usize,
    data: *mut *mut c_void,
) -> avsg_status {
    enter(|| {
        let out = contract!(OutPtr::new("data", data, ptr::null_mut())?);
        let pool = &handle::shared::<Pool>(pool)?.host;
        let at = pool.view(layer, segment)?.ptr(row);
        rows::index("row", row, pool.rows())?;
        out.write(at.cast_mut().cast());
        Ok(())
    })
}

/// Returns the indexers that an array names for the layers of a pool; one for all if it is empty.
///
/// # Safety
/// `of_layer` is NULL or valid for reads of `count` elements.
pub(crate) unsafe fn indexers(
    of_layer: *const u32,
    count: usize,
    layers: usize,
) -> Result<Indexers> {
    if count == 0 {
        return Ok(Indexers::default());
    }
    Indexers::check_count(count, layers)?;
    let given = contract!(boundary::array("layer_indexer", of_layer, count))?;
    let of_layer = boundary::converted("layer_indexer", given, |&of| Ok(of as usize))?;
    Ok(Indexers::of_layers(&of_layer)?)
}
