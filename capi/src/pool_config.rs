//! The configuration of a host pool.

use crate::allocator::{allocator, avsg_allocator};
use crate::contract::contract;
use crate::layout::avsg_pool_layout;
use crate::segments::AVSG_MAX_SEGMENTS;
use crate::sized::{self, SizedStruct};
use crate::status::{Failure, Result, check_reserved};
use avsg::pool::{Pages, PoolConfig};
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
    /// An `avsg_pages`; ignored with a layout or an allocator.
    pub pages: i32,
    /// Must be 0.
    pub reserved: u32,
    /// NULL, or the caller's memory (Part 2).
    pub layout: *const avsg_pool_layout,
    /// NULL, or the allocator of each chunk (Part 2).
    pub allocator: *const avsg_allocator,
}

// SAFETY: the struct is repr(C) with `size` first, has no padding (128 bytes, asserted below), and
// its fields are integers and pointers.
unsafe impl SizedStruct for avsg_pool_config {
    const NAME: &'static str = "avsg_pool_config";
    const FIRST_SIZE: usize = 128;
}
const _: () = assert!(size_of::<avsg_pool_config>() == 128);

/// Reads the configuration of a pool. Its layout is returned unread.
///
/// # Safety
/// `config` is NULL or valid for reads of the number of bytes in its `size`, and its allocator is as
/// [`allocator`] demands.
pub(crate) unsafe fn pool_config(
    config: *const avsg_pool_config,
) -> Result<(PoolConfig, *const avsg_pool_layout)> {
    let config = contract!(sized::read(config))?;
    let count = config.segments;
    if count > MAX_SEGMENTS {
        return Failure::refuse(format!(
            "segments is {count}, but a row has 1 to {MAX_SEGMENTS}; merge adjacent ones"
        ));
    }
    check_reserved(config.reserved)?;
    let sizes = config.segment_bytes.iter().zip(&config.segment_stride);
    let segments: heapless::Vec<Segment, MAX_SEGMENTS> = sizes
        .take(count)
        .map(|(&bytes, &stride)| Segment {
            bytes,
            stride: if stride == 0 { bytes } else { stride },
        })
        .collect();
    let pages = match config.pages {
        0 | 2 => Pages::Huge2M,
        1 => Pages::Huge1G,
        3 => Pages::Thp,
        4 => Pages::Plain,
        n => {
            let limit = "it must be 0..=4; pass AVSG_PAGES_DEFAULT";
            return Failure::refuse(format!("pages is {n}, but {limit}"));
        }
    };
    let defaults = PoolConfig::new(config.layers, config.rows, RowFormat::strided(&segments)?);
    let chunk_bytes =
        if config.chunk_bytes == 0 { defaults.chunk_bytes } else { config.chunk_bytes };
    let allocator = contract!(allocator(config.allocator))?;
    Ok((PoolConfig { chunk_bytes, pages, allocator, ..defaults }, config.layout))
}
