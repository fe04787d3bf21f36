//! The configuration and the description of a host pool.

use crate::allocator::{allocator, avsg_allocator};
use crate::sized::{self, SizedStruct};
use crate::status::avsg_status::AVSG_INVALID;
use crate::status::{Failure, Result};
use avsg::pool::{HostPool, Pages, PoolConfig, Role};
use avsg::rows::{MAX_SEGMENTS, RowFormat, Segment};

/// The largest number of segments of a row.
pub const AVSG_MAX_SEGMENTS: usize = 4;
const _: () = assert!(AVSG_MAX_SEGMENTS == MAX_SEGMENTS);

/// The pages of a pool's memory.
#[repr(i32)]
pub enum avsg_pages {
    /// The same as AVSG_PAGES_HUGE_2M.
    AVSG_PAGES_DEFAULT = 0,
    /// Explicit hugepages of 1 GiB; if the system has none free, AVSG_PAGES_HUGE_2M.
    AVSG_PAGES_HUGE_1G = 1,
    /// Explicit hugepages of 2 MiB; if the system has none free, AVSG_PAGES_THP.
    AVSG_PAGES_HUGE_2M = 2,
    /// Transparent hugepages; if the system does not give them, AVSG_PAGES_PLAIN.
    AVSG_PAGES_THP = 3,
    /// Plain pages.
    AVSG_PAGES_PLAIN = 4,
    /// The caller's memory, or that of an allocator. It appears only in `avsg_pool_info`.
    AVSG_PAGES_CALLER = 5,
}

/// The access of a process to a pool. A pool has at most one writer at a time.
#[repr(i32)]
pub enum avsg_role {
    /// The process reads rows, and its mapping is read-only.
    AVSG_ROLE_READER = 0,
    /// The process reads and writes rows.
    AVSG_ROLE_WRITER = 1,
}

/// The configuration of a host pool. `size`, `layers`, `rows`, `segments` and `segment_bytes` must
/// be set.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_pool_config {
    /// sizeof(avsg_pool_config).
    pub size: usize,
    /// The number of layers.
    pub layers: usize,
    /// Rows of each layer.
    pub rows: usize,
    /// Segments, the contiguous parts of a row that are apart in memory: 1 to 4. A row of BF16 MLA
    /// is one segment of 1152 bytes, or two of 1024 and 128.
    pub segments: usize,
    /// Bytes of each segment.
    pub segment_bytes: [usize; AVSG_MAX_SEGMENTS],
    /// Bytes from the segment of one row to that of the next, in the pool, the device buffer and
    /// the fresh rows; 0 selects `segment_bytes`.
    pub segment_stride: [usize; AVSG_MAX_SEGMENTS],
    /// The largest length of a chunk, the unit that a device registers; 0 selects 64 MiB, and
    /// SIZE_MAX makes one chunk of each layer and segment.
    pub chunk_bytes: usize,
    /// An `avsg_pages`. It is ignored with an allocator.
    pub pages: i32,
    /// Must be 0.
    pub reserved: u32,
    /// The caller's allocator, which `avsg_pool_create` takes each chunk from; NULL for memory of the
    /// system. A pool with an allocator cannot be exported. Other functions ignore it.
    pub allocator: *const avsg_allocator,
}

// SAFETY: the struct is repr(C) with `size` first, has no padding (120 bytes, asserted below), and
// its fields are integers and a pointer.
unsafe impl SizedStruct for avsg_pool_config {
    const NAME: &'static str = "avsg_pool_config";
    const FIRST_SIZE: usize = 112;
}
const _: () = assert!(size_of::<avsg_pool_config>() == 120);

/// Reads the configuration of a pool.
///
/// # Safety
/// `config` is NULL or valid for reads of the number of bytes in its `size`, and its allocator is as
/// [`allocator`] demands.
pub(crate) unsafe fn pool_config(config: *const avsg_pool_config) -> Result<PoolConfig> {
    // SAFETY: the caller keeps the contract of this function (`# Safety`).
    let config = unsafe { sized::read(config)? };
    let invalid = |text| Err(Failure::new(AVSG_INVALID, text));
    let count = config.segments;
    if count > MAX_SEGMENTS {
        return invalid(format!(
            "segments is {count}, but a row has 1 to {MAX_SEGMENTS}; merge adjacent ones"
        ));
    }
    if config.reserved != 0 {
        let value = config.reserved;
        return invalid(format!("reserved is {value}, but it must be 0; zero the struct first"));
    }
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
            return invalid(format!("pages is {n}, but it must be 0..=4; pass AVSG_PAGES_DEFAULT"));
        }
    };
    let defaults = PoolConfig::new(config.layers, config.rows, RowFormat::strided(&segments)?);
    let chunk_bytes =
        if config.chunk_bytes == 0 { defaults.chunk_bytes } else { config.chunk_bytes };
    // SAFETY: the caller keeps the contract of this function (`# Safety`).
    let allocator = unsafe { allocator(config.allocator)? };
    Ok(PoolConfig { chunk_bytes, pages, allocator, ..defaults })
}

/// Returns the role of an `avsg_role`.
pub(crate) fn role(role: i32) -> Result<Role> {
    match role {
        0 => Ok(Role::Reader),
        1 => Ok(Role::Writer),
        other => crate::choices::unknown_constant("role", other, 1),
    }
}

/// The description of a pool.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_pool_info {
    /// sizeof(avsg_pool_info).
    pub size: usize,
    /// The number of layers.
    pub layers: usize,
    /// Rows of each layer.
    pub rows: usize,
    /// Segments of a row.
    pub segments: usize,
    /// Bytes of each segment.
    pub segment_bytes: [usize; AVSG_MAX_SEGMENTS],
    /// Bytes from the segment of one row to that of the next.
    pub segment_stride: [usize; AVSG_MAX_SEGMENTS],
    /// Bytes of a row: the sum of `segment_bytes`.
    pub row_bytes: usize,
    /// Bytes of all chunks.
    pub bytes: usize,
    /// Bytes of the chunks that are in hugepages.
    pub huge_bytes: usize,
    /// The number of chunks.
    pub chunks: usize,
    /// An `avsg_pages`: the kind that the pool has, or AVSG_PAGES_CALLER.
    pub pages: i32,
    /// An `avsg_role` of this process.
    pub role: i32,
}

// SAFETY: the struct is repr(C) with `size` first, has no padding (136 bytes, asserted below), and
// its fields are integers.
unsafe impl SizedStruct for avsg_pool_info {
    const NAME: &'static str = "avsg_pool_info";
    const FIRST_SIZE: usize = 136;
}
const _: () = assert!(size_of::<avsg_pool_info>() == 136);

pub(crate) fn pool_info(pool: &HostPool) -> avsg_pool_info {
    let segments = pool.format().as_slice();
    let each = |of: fn(&Segment) -> usize| {
        let mut all = [0; MAX_SEGMENTS];
        all.iter_mut().zip(segments).for_each(|(to, segment)| *to = of(segment));
        all
    };
    avsg_pool_info {
        size: 0,
        layers: pool.layers(),
        rows: pool.rows(),
        segments: segments.len(),
        segment_bytes: each(|s| s.bytes),
        segment_stride: each(|s| s.stride),
        row_bytes: pool.format().bytes(),
        bytes: pool.bytes(),
        huge_bytes: pool.huge_bytes(),
        chunks: pool.chunks().len(),
        pages: match pool.pages() {
            Pages::Huge1G => 1,
            Pages::Huge2M => 2,
            Pages::Thp => 3,
            Pages::Plain => 4,
            Pages::Caller => 5,
        },
        role: i32::from(pool.role() == Role::Writer),
    }
}
