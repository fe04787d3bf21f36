//! The configuration of a host pool.

use crate::allocator::{allocator, avsg_allocator};
use crate::handle;
use crate::layout::{avsg_pool_layout, in_layout};
use crate::pool::{Pool, avsg_pool};
use crate::pool_file::{avsg_pool_file, in_file};
use crate::segments::AVSG_MAX_SEGMENTS;
use crate::sized;
use crate::status::{Result, avsg_status, check_reserved, choice, ensure};
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::{MAX_SEGMENTS, RowFormat, Segment};

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
    let config = contract!(sized::read(config))?;
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
