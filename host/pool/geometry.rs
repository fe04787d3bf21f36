//! The configuration of a pool, and its layout: rows in chunks, and chunks in the pool's file.

use std::fmt;
use std::sync::Arc;

use super::chunk::{Chunk, Start};
use crate::disk::{Layout, PoolFile, Shape, Wrap};
use crate::indexers::Indexers;
use crate::overlap::{Content, Grid, Grids};
use crate::rows::{self, MAX_SEGMENTS, RowFormat, Strides};
use crate::system::allocator::Allocator;
use crate::system::mapping::MIB2;
use crate::{Result, ensure, invalid};

/// The page size in bytes that chunks are aligned to, because a device registers whole pages.
pub(super) const PAGE: usize = 4096;

/// The kind of pages that a pool has, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Explicit hugetlb pages of 1 GiB, which are tried only if the configuration names them.
    Huge1G,
    /// Explicit hugetlb pages of 2 MiB.
    Huge2M,
    /// Transparent hugepages over at least half of the pool.
    Thp,
    /// Pages of the base size, 4 KiB on x86.
    Plain,
    /// Memory of the caller, whose pages are not known.
    Caller,
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Huge1G => "1 GiB hugepages",
            Self::Huge2M => "2 MiB hugepages",
            Self::Thp => "transparent hugepages",
            Self::Plain => "plain pages",
            Self::Caller => "the caller's memory",
        })
    }
}

/// The size and layout of a pool.
#[derive(Debug, Clone)]
pub struct PoolConfig {
    /// Number of layers.
    pub layers: usize,
    /// Number of rows in each layer.
    pub rows: usize,
    /// The format of a row.
    pub format: RowFormat,
    /// Upper limit on the bytes of a chunk. A chunk holds the largest power of two of rows that
    /// fits.
    pub chunk_bytes: usize,
    /// The kind of pages that is tried first; worse kinds follow in the order of [`Pages`].
    pub pages: Pages,
    /// The caller's allocator, which each chunk is taken from; `None` for memory of the system. With
    /// an allocator `pages` is ignored, and the pool cannot be exported.
    pub allocator: Option<Arc<dyn Allocator>>,
    /// The file that holds the rows; `None` for rows in memory. With a file `chunk_bytes` and `pages` are
    /// ignored, and an allocator is refused.
    pub file: Option<PoolFile>,
    /// The layers that share an indexer, whose rows of one id are side by side in the file. An engine over
    /// the pool must have the same indexers. Rows in memory do not depend on it.
    pub indexers: Indexers,
    /// The caller's memory that holds the rows ([`Self::with_layout`]). Then `chunk_bytes`, `pages` and
    /// `allocator` are ignored, and so are the strides of `format`, except by fresh rows.
    pub layout: Option<Arc<LaidOut>>,
}

/// A checked layout of rows in memory of the caller, for the layers, rows and format of one configuration.
#[derive(Debug)]
pub struct LaidOut {
    pub(super) geometry: Geometry,
    /// The first row of every chunk in the order of the chunk table.
    pub(super) starts: Box<[Start]>,
    /// The ranges that a device registers.
    pub(super) chunks: Box<[Chunk]>,
    /// Bytes of all regions.
    pub(super) bytes: usize,
}

impl PoolConfig {
    /// Returns a configuration with chunks of at most 64 MiB, below the 128 MiB that one registration is known
    /// to take on Ascend hosts, that tries 2 MiB hugepages first.
    pub fn new(layers: usize, rows: usize, format: RowFormat) -> Self {
        let (chunk_bytes, pages) = (64 << 20, Pages::Huge2M);
        let (allocator, file, indexers, layout) = (None, None, Indexers::default(), None);
        Self { layers, rows, format, chunk_bytes, pages, allocator, file, indexers, layout }
    }

    /// Returns the number of chunks; 0 for rows in a file.
    ///
    /// # Errors
    /// If the geometry is invalid ([`HostPool::new`](super::HostPool::new)).
    pub fn chunk_count(&self) -> Result<usize> {
        if self.file.is_some() { Ok(0) } else { self.geometry().map(|g| g.chunk_count()) }
    }

    /// Returns the memory of the rows whose chunks begin at known addresses: those of a layout.
    pub(crate) fn grids(
        &self,
        address: fn(&Start) -> Option<usize>,
    ) -> impl Iterator<Item = Result<Grids>> {
        let laid_out = self.layout.iter();
        laid_out.flat_map(move |laid_out| laid_out.geometry.grids(&laid_out.starts, address))
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct SegmentLayout {
    /// A chunk holds `1 << shift` rows.
    pub shift: u32,
    /// The distances of the rows of a chunk.
    pub strides: Strides,
    /// Index of the first chunk within the layer, then the number of chunks.
    pub(super) first: usize,
    pub chunks: usize,
    /// Offset of the first byte within the layer.
    offset: usize,
    chunk_len: usize,
    last_len: usize,
}

/// The layout of a checked [`PoolConfig`]; products of its numbers do not overflow.
#[derive(Debug, Clone)]
pub(crate) struct Geometry {
    pub format: RowFormat,
    pub layers: usize,
    pub rows: usize,
    pub(super) chunk_bytes: usize,
    pub segments: heapless::Vec<SegmentLayout, MAX_SEGMENTS>,
    layer_len: usize,
    pub(super) total: usize,
    /// Where the rows are in a file, if they are in one. Then the segments have no memory.
    pub disk: Option<Layout>,
}

impl Geometry {
    pub fn new(config: &PoolConfig) -> Result<Self> {
        let PoolConfig { layers, rows, chunk_bytes, .. } = *config;
        rows::at_least_one("layers", layers)?;
        rows::at_least_one("rows", rows)?;
        let too_large = || {
            invalid!("pool geometry" is format!("{layers} layers of {rows} rows"), but
                "the pool must fit the address space"; "ask for fewer rows")
        };
        let (mut segments, mut first, mut layer_len) = (heapless::Vec::new(), 0, 0usize);
        for &segment in config.format.as_slice() {
            ensure!(segment.stride <= chunk_bytes, "chunk bytes" is chunk_bytes, but
                "a row takes {}", segment.stride; "pass chunks that hold at least one row");
            let (layout, len) =
                SegmentLayout::new(segment.stride, rows, chunk_bytes, first, layer_len)
                    .ok_or_else(too_large)?;
            first += layout.chunks;
            layer_len = layer_len.checked_add(len).ok_or_else(too_large)?;
            // This cannot fail: the vector has room for the most segments that a format may have.
            let _ = segments.push(layout);
        }
        let total = layer_len.checked_mul(layers).filter(|&total| total <= isize::MAX as usize);
        let total = total.ok_or_else(too_large)?;
        let format = config.format.clone();
        Ok(Self { format, layers, rows, chunk_bytes, segments, layer_len, total, disk: None })
    }

    /// Returns the geometry of a pool whose memory is not laid out here: chunks of at least the given
    /// number of rows of each segment, with these distances.
    pub(super) fn of_parts(config: &PoolConfig, parts: &[(usize, Strides)]) -> Result<Self> {
        let PoolConfig { layers, rows, chunk_bytes, .. } = *config;
        rows::at_least_one("layers", layers)?;
        rows::at_least_one("rows", rows)?;
        let format = config.format.clone();
        let (mut segments, mut first) = (heapless::Vec::new(), 0usize);
        for &(per_chunk, strides) in parts {
            rows::at_least_one("rows of a part", per_chunk)?;
            let shift = per_chunk.checked_next_power_of_two().map_or(63, usize::ilog2);
            let chunks = rows.div_ceil(1 << shift);
            let layout = SegmentLayout { shift, strides, first, chunks, ..Default::default() };
            // This cannot fail: the vector has room for the most segments that a format may have.
            let _ = segments.push(layout);
            // Segments are few, so that a sum that saturates is refused below.
            first = first.saturating_add(chunks);
        }
        ensure!(first.checked_mul(layers).is_some_and(|chunks| chunks <= isize::MAX as usize / 64),
            "layers" is layers, but "the pool must fit the address space"; "ask for fewer layers");
        let (layer_len, total, disk) = (0, 0, None);
        Ok(Self { format, layers, rows, chunk_bytes, segments, layer_len, total, disk })
    }

    /// Checks that an engine has the indexers of a pool in a file, because one read brings the rows of all layers of an
    /// indexer.
    pub fn check_indexers(&self, indexers: &Indexers) -> Result<()> {
        let Some(disk) = &self.disk else { return Ok(()) };
        let differs = |&layer: &usize| indexers.of(layer) != disk.indexer_of(layer);
        let Some(layer) = (0..disk.layers()).find(differs) else { return Ok(()) };
        Err(invalid!("indexer of a layer" is indexers.of(layer), but
            "layer {layer} has indexer {} in the pool's file", disk.indexer_of(layer);
            "give the engine the indexers that the pool was made with"))
    }

    /// Checks that rows have addresses, which kernels of a device read them from.
    pub fn check_addresses(&self) -> Result<()> {
        ensure!(self.disk.is_none(), "pool file" is "set", but
            "kernels of an Ascend device read rows from registered memory";
            "leave the file out, or make the engine on the CPU");
        Ok(())
    }

    /// Returns the layer, the segment and the first row of a chunk, by its place in the chunk table.
    pub(super) fn of_chunk(&self, at: usize) -> (usize, usize, usize) {
        let (layer, within) = (at / self.chunks_per_layer(), at % self.chunks_per_layer());
        let segment = self.segments.iter().rposition(|layout| layout.first <= within).unwrap_or(0);
        let layout = &self.segments[segment];
        (layer, segment, (within - layout.first) << layout.shift)
    }

    /// Returns the memory of the rows of those chunks that have an address.
    pub fn grids(
        &self,
        starts: &[Start],
        mut address: impl FnMut(&Start) -> Option<usize>,
    ) -> impl Iterator<Item = Result<Grids>> {
        let at = starts.iter().enumerate();
        at.filter_map(move |(at, start)| Some((at, address(start)?))).map(|(at, start)| {
            let (layer, segment, first) = self.of_chunk(at);
            let layout = &self.segments[segment];
            let rows = (self.rows - first).min(1 << layout.shift);
            let bytes = self.format.as_slice()[segment].bytes;
            Grid::of(Content::Rows { layer, segment }, start, layout.strides, [rows, bytes])
        })
    }

    pub fn chunks_per_layer(&self) -> usize {
        self.segments.iter().map(|layout| layout.chunks).sum()
    }

    pub fn chunk_count(&self) -> usize {
        self.layers * self.chunks_per_layer()
    }

    /// Returns the offset and the length in bytes of every chunk, in the order of the chunk table.
    pub(super) fn spans(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.layers).flat_map(move |layer| {
            self.segments.iter().flat_map(move |layout| {
                (0..layout.chunks).map(move |index| {
                    let at = layer * self.layer_len + layout.offset + index * layout.chunk_len;
                    let last = index + 1 == layout.chunks;
                    (at, if last { layout.last_len } else { layout.chunk_len })
                })
            })
        })
    }
}

impl SegmentLayout {
    /// Returns the layout and the bytes that it takes in a layer; `None` on overflow.
    fn new(
        stride: usize,
        rows: usize,
        chunk_bytes: usize,
        first: usize,
        offset: usize,
    ) -> Option<(Self, usize)> {
        // The caller has checked that a row fits, so the quotient is at least 1. A chunk is not
        // larger than all rows need.
        let fit = (chunk_bytes / stride).ilog2();
        let shift = fit.min(rows.checked_next_power_of_two()?.ilog2());
        let per_chunk = 1usize << shift;
        let chunks = rows.div_ceil(per_chunk);
        let last_rows = rows - (chunks - 1) * per_chunk;
        let raw = per_chunk.min(rows).checked_mul(stride)?;
        // Large chunks begin on a 2 MiB page, so that no hugepage belongs to two registrations.
        let align = if raw >= MIB2 { MIB2 } else { PAGE };
        let chunk_len = raw.checked_next_multiple_of(align)?;
        let last_len = last_rows.checked_mul(stride)?.checked_next_multiple_of(align)?;
        let len = (chunks - 1).checked_mul(chunk_len)?.checked_add(last_len)?;
        let strides = Strides::rows(stride);
        let layout = Self { shift, strides, first, chunks, offset, chunk_len, last_len };
        Some((layout, len))
    }
}

/// A store without anything between it and its file.
pub(super) const DIRECT: Wrap<'static> = &|disk| disk;

/// Returns the shape of a pool in a file, and refuses what only memory has.
pub(super) fn shape(config: &PoolConfig) -> Result<Shape> {
    ensure!(config.allocator.is_none(), "allocator" is "set", but
        "the rows of this pool are in a file"; "leave the allocator or the file out");
    ensure!(config.pages != Pages::Huge1G, "pages" is config.pages, but
        "the rows of this pool are in a file"; "leave the pages or the file out");
    let PoolConfig { layers, rows, format, indexers, .. } = config.clone();
    Ok(Shape { layers, rows, format, indexers })
}
