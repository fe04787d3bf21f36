//! The configuration of a pool, and its layout: rows in chunks, and chunks in the pool's file.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::chunk::{Chunk, Start};
use crate::disk::{Layout, PoolFile, Shape, Wrap};
use crate::indexers::Indexers;
use crate::overlap::{Content, Grid, Grids};
use crate::rows::{self, MAX_SEGMENTS, RowFormat, Segment, Strides};
use crate::system::allocator::Allocator;
use crate::system::mapping::MIB2;
use crate::{Error, Result, ensure, invalid};

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

impl Pages {
    /// The kinds of the system's pages, best first.
    pub(crate) const OF_SYSTEM: [Self; 4] = [Self::Huge1G, Self::Huge2M, Self::Thp, Self::Plain];
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

#[derive(Debug, Clone)]
pub(crate) struct SegmentLayout {
    /// A chunk holds `1 << shift` rows.
    pub shift: u32,
    /// The distances of the rows of a chunk.
    pub strides: Strides,
    /// Index of the first chunk within the layer, then the number of chunks.
    pub(super) first: usize,
    pub chunks: usize,
    /// The bytes that chunks are a multiple of, in memory that the pool lays out.
    align: usize,
}

impl SegmentLayout {
    /// Returns the bytes of a chunk of `rows` rows in memory that the pool lays out; `None` on overflow.
    fn chunk_len(&self, rows: usize) -> Option<usize> {
        rows.checked_mul(self.strides.row)?.checked_next_multiple_of(self.align)
    }
}

/// The layout of a checked [`PoolConfig`]; products of its numbers do not overflow.
#[derive(Debug, Clone)]
pub(crate) struct Geometry {
    pub format: RowFormat,
    pub layers: usize,
    pub rows: usize,
    pub(super) chunk_bytes: usize,
    pub segments: heapless::Vec<SegmentLayout, MAX_SEGMENTS>,
    /// Bytes of memory that the pool lays out.
    pub(super) total: usize,
    /// Where the rows are in a file, if they are in one. Then the segments have no memory.
    pub disk: Option<Layout>,
}

impl Geometry {
    pub fn new(config: &PoolConfig) -> Result<Self> {
        let PoolConfig { layers, rows, chunk_bytes, .. } = *config;
        let part = |&Segment { stride, .. }: &Segment| {
            ensure!(stride <= chunk_bytes, "chunk bytes" is chunk_bytes, but
                "a row takes {stride}"; "pass chunks that hold at least one row");
            let fit = 1 << (chunk_bytes / stride).ilog2();
            // A chunk is not larger than all rows need.
            let all = rows.checked_next_power_of_two().unwrap_or(fit);
            Ok((fit.min(all), Strides::rows(stride)))
        };
        let mut geometry = Self::of_parts(config, config.format.as_slice().iter().map(part))?;
        let add = |sum: usize, layout: &mut SegmentLayout| {
            let (before, per_chunk) = (layout.chunks - 1, 1 << layout.shift);
            // Large chunks begin on a 2 MiB page, so that no hugepage belongs to two registrations.
            let raw = rows.min(per_chunk) * layout.strides.row;
            layout.align = if raw >= MIB2 { MIB2 } else { PAGE };
            let len = before.checked_mul(layout.chunk_len(per_chunk)?)?;
            sum.checked_add(len)?.checked_add(layout.chunk_len(rows - before * per_chunk)?)
        };
        let layer = geometry.segments.iter_mut().try_fold(0, add);
        let total = layer.and_then(|layer| layer.checked_mul(layers));
        let total = total.filter(|&total| total <= isize::MAX as usize);
        geometry.total = total.ok_or_else(|| too_large(config))?;
        Ok(geometry)
    }

    /// Returns the geometry of a pool whose memory is not laid out here: chunks of at least the given
    /// number of rows of each segment, with these distances.
    pub(super) fn of_parts(
        config: &PoolConfig,
        parts: impl Iterator<Item = Result<(usize, Strides)>>,
    ) -> Result<Self> {
        let PoolConfig { layers, rows, chunk_bytes, .. } = *config;
        rows::at_least_one("layers", layers)?;
        rows::at_least_one("rows", rows)?;
        let (mut segments, mut first) = (heapless::Vec::new(), 0usize);
        for part in parts {
            let (per_chunk, strides) = part?;
            rows::at_least_one("rows of a part", per_chunk)?;
            let shift = per_chunk.checked_next_power_of_two().map_or(63, usize::ilog2);
            let chunks = rows.div_ceil(1 << shift);
            // This cannot fail: the vector has room for the most segments that a format may have.
            let _ = segments.push(SegmentLayout { shift, strides, first, chunks, align: PAGE });
            // Segments are few, so that a sum that saturates is refused below.
            first = first.saturating_add(chunks);
        }
        if first.checked_mul(layers).is_none_or(|chunks| chunks > isize::MAX as usize / 64) {
            return Err(too_large(config));
        }
        let format = config.format.clone();
        Ok(Self { format, layers, rows, chunk_bytes, segments, total: 0, disk: None })
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

    /// Returns the layer, the segment and the rows of a chunk, by its place in the chunk table.
    pub(super) fn of_chunk(&self, at: usize) -> (usize, usize, Range<usize>) {
        let (layer, within) = (at / self.chunks_per_layer(), at % self.chunks_per_layer());
        let segment = self.segments.iter().rposition(|layout| layout.first <= within).unwrap_or(0);
        let layout = &self.segments[segment];
        let first = (within - layout.first) << layout.shift;
        (layer, segment, first..first + (self.rows - first).min(1 << layout.shift))
    }

    /// Returns the memory of the rows of those chunks that have an address.
    pub fn grids(
        &self,
        starts: &[Start],
        mut address: impl FnMut(&Start) -> Option<usize>,
    ) -> impl Iterator<Item = Result<Grids>> {
        let at = starts.iter().enumerate();
        at.filter_map(move |(at, start)| Some((at, address(start)?))).map(|(at, start)| {
            let (layer, segment, rows) = self.of_chunk(at);
            let (strides, bytes) =
                (self.segments[segment].strides, self.format.as_slice()[segment].bytes);
            Grid::of(Content::Of("rows", [layer, segment]), start, strides, [rows.len(), bytes])
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
        (0..self.chunk_count()).scan(0, |end, at| {
            let (_, segment, rows) = self.of_chunk(at);
            let (start, len) = (*end, self.segments[segment].chunk_len(rows.len())?);
            *end += len;
            Some((start, len))
        })
    }
}

fn too_large(config: &PoolConfig) -> Error {
    invalid!("pool geometry" is format!("{} layers of {} rows", config.layers, config.rows), but
        "the pool must fit the address space"; "ask for fewer layers or rows")
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
