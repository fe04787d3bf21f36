//! What a host pool is to be, and what it is.

use crate::sized::{self, Sized_};
use crate::status::avsg_status::AVSG_INVALID;
use crate::status::{Fail, Result};
use avsg::pool::{HostPool, Pages, PoolConfig, Role};
use avsg::rows::{MAX_SEGMENTS, RowFormat, Segment};

/// Most segments of a row.
pub const AVSG_MAX_SEGMENTS: usize = 4;
const _: () = assert!(AVSG_MAX_SEGMENTS == MAX_SEGMENTS);

/// What backs a pool.
#[repr(i32)]
pub enum avsg_pages {
    /// The best of 2 MiB hugepages, transparent hugepages and plain pages that can be had.
    AVSG_PAGES_DEFAULT = 0,
    /// Explicit hugepages of 1 GiB, or else the next that can be had.
    AVSG_PAGES_HUGE_1G = 1,
    /// Explicit hugepages of 2 MiB, or else the next.
    AVSG_PAGES_HUGE_2M = 2,
    /// Transparent hugepages, or else plain pages.
    AVSG_PAGES_THP = 3,
    /// Plain pages.
    AVSG_PAGES_PLAIN = 4,
    /// The caller's memory. Only reported.
    AVSG_PAGES_CALLER = 5,
}

/// What a process may do with a pool. One process at a time is its writer.
#[repr(i32)]
pub enum avsg_role {
    /// Reads rows; an imported mapping is read-only.
    AVSG_ROLE_READER = 0,
    /// Reads and writes rows.
    AVSG_ROLE_WRITER = 1,
}

/// What a host pool is to be. Zero the whole struct, set `size`, `layers`, `rows`, `segments` and
/// `segment_bytes`: 0 is every other field's default.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_pool_config {
    /// sizeof(avsg_pool_config).
    pub size: usize,
    /// Layers.
    pub layers: usize,
    /// Rows (tokens) of each layer.
    pub rows: usize,
    /// Contiguous parts of a row that lie apart in memory: 1 to 4. One of 1152 bytes for BF16 MLA, or two
    /// of 1024 and 128.
    pub segments: usize,
    /// Bytes of each segment that are copied.
    pub segment_bytes: [usize; AVSG_MAX_SEGMENTS],
    /// Bytes from one row's segment to the next row's, in host memory, device buffer and fresh rows
    /// alike; 0: rows are packed.
    pub segment_stride: [usize; AVSG_MAX_SEGMENTS],
    /// Most bytes of a chunk, which is what a device registers; 0: 64 MiB. SIZE_MAX makes one chunk of
    /// each layer and segment.
    pub chunk_bytes: usize,
    /// An `avsg_pages`: what to try first.
    pub pages: i32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: repr(C) without padding (112 bytes, asserted below), size first, integers only.
unsafe impl Sized_ for avsg_pool_config {
    const NAME: &'static str = "avsg_pool_config";
    const FIRST: usize = 112;
}
const _: () = assert!(size_of::<avsg_pool_config>() == 112);

/// A configuration that Rust can use.
///
/// # Safety
/// `config` is NULL or valid for as many bytes as its `size` says.
pub(crate) unsafe fn pool_config(config: *const avsg_pool_config) -> Result<PoolConfig> {
    // SAFETY: the contract.
    let config = unsafe { sized::read(config)? };
    let invalid = |text| Err(Fail::new(AVSG_INVALID, text));
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
            return invalid(format!(
                "pages is {n}, but a pool is made of 0..=4; pass AVSG_PAGES_DEFAULT"
            ));
        }
    };
    let usual = PoolConfig::new(config.layers, config.rows, RowFormat::strided(&segments)?);
    let chunk_bytes = if config.chunk_bytes == 0 { usual.chunk_bytes } else { config.chunk_bytes };
    Ok(PoolConfig { chunk_bytes, pages, ..usual })
}

/// A role that C named.
pub(crate) fn role(role: i32) -> Result<Role> {
    match role {
        0 => Ok(Role::Reader),
        1 => Ok(Role::Writer),
        other => crate::config::unknown("role", other, 1),
    }
}

/// What a pool is.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_pool_info {
    /// sizeof(avsg_pool_info), set by the caller.
    pub size: usize,
    /// Layers.
    pub layers: usize,
    /// Rows of each layer.
    pub rows: usize,
    /// Segments of a row.
    pub segments: usize,
    /// Bytes of each.
    pub segment_bytes: [usize; AVSG_MAX_SEGMENTS],
    /// Stride of each.
    pub segment_stride: [usize; AVSG_MAX_SEGMENTS],
    /// Bytes of a whole row, without the gaps of strides.
    pub row_bytes: usize,
    /// Bytes of all chunks.
    pub bytes: usize,
    /// Bytes of it that hugepages map.
    pub huge_bytes: usize,
    /// Chunks.
    pub chunks: usize,
    /// An `avsg_pages`: what it really got.
    pub pages: i32,
    /// An `avsg_role`.
    pub role: i32,
}

// SAFETY: repr(C) without padding (136 bytes, asserted below), size first, integers only.
unsafe impl Sized_ for avsg_pool_info {
    const NAME: &'static str = "avsg_pool_info";
    const FIRST: usize = 136;
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
