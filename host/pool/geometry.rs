//! Where a row lies: rows to chunks, chunks to bytes of the pool's file.

use super::pages::Pages;
use crate::mapping::MIB2;
use crate::rows::{self, MAX_SEGMENTS, RowFormat, Segment};
use crate::{Error, Result};

/// Chunks stay below the 128 MiB that one registration is known to take on Ascend hosts.
pub const DEFAULT_CHUNK_BYTES: usize = 64 << 20;
/// A device registers whole pages.
const PAGE: usize = 4096;

/// What a pool is to be.
#[derive(Debug, Clone)]
pub struct PoolConfig {
    /// Layers.
    pub layers: usize,
    /// Rows of each layer.
    pub rows: usize,
    /// The shape of a row.
    pub format: RowFormat,
    /// The most bytes that a chunk may have; a chunk holds the largest power of two of rows below.
    pub chunk_bytes: usize,
    /// The first rung of the hugepage ladder to try.
    pub pages: Pages,
}

impl PoolConfig {
    /// Chunks of at most 64 MiB, and the ladder from 2 MiB hugepages down.
    pub fn new(layers: usize, rows: usize, format: RowFormat) -> Self {
        Self { layers, rows, format, chunk_bytes: DEFAULT_CHUNK_BYTES, pages: Pages::Huge2M }
    }

    /// The length of every chunk, layer by layer and segment by segment: what
    /// [`HostPool::from_caller`](super::HostPool::from_caller) expects.
    pub fn chunk_lens(&self) -> Result<Vec<usize>> {
        let geometry = Geometry::new(self)?;
        crate::memory::check("host pool", geometry.total())?;
        Ok(geometry.spans().map(|(_, len)| len).collect())
    }

    /// How many chunks there are.
    ///
    /// # Errors
    /// As [`HostPool::new`](super::HostPool::new) for the geometry.
    pub fn chunk_count(&self) -> Result<usize> {
        Geometry::new(self).map(|geometry| geometry.chunk_count())
    }
}

/// One segment's rows within a layer.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    /// A chunk holds `1 << shift` rows.
    pub(super) shift: u32,
    pub(super) bytes: usize,
    pub(super) stride: usize,
    /// Its first chunk within the layer, and how many there are.
    pub(super) first: usize,
    pub(super) chunks: usize,
    /// Its first byte within the layer.
    offset: usize,
    chunk_len: usize,
    last_len: usize,
}

/// A checked [`PoolConfig`]: no product below overflows.
#[derive(Debug, Clone)]
pub(super) struct Geometry {
    pub(super) format: RowFormat,
    pub(super) layers: usize,
    pub(super) rows: usize,
    pub(super) chunk_bytes: usize,
    pub(super) lanes: heapless::Vec<Lane, MAX_SEGMENTS>,
    layer_len: usize,
    total: usize,
}

impl Geometry {
    pub(super) fn new(config: &PoolConfig) -> Result<Self> {
        let PoolConfig { layers, rows, chunk_bytes, .. } = *config;
        rows::at_least_one("layers", layers)?;
        rows::at_least_one("rows", rows)?;
        let too_large = || {
            let (limit, remedy) = ("the pool must fit the address space", "ask for fewer rows");
            Error::invalid(
                "pool geometry",
                format!("{layers} layers of {rows} rows"),
                limit,
                remedy,
            )
        };
        let (mut lanes, mut first, mut layer_len) = (heapless::Vec::new(), 0, 0usize);
        for &segment in config.format.as_slice() {
            if segment.stride > chunk_bytes {
                return Err(Error::invalid(
                    "chunk bytes",
                    chunk_bytes,
                    format!("a row takes {}", segment.stride),
                    "pass chunks that hold at least one row",
                ));
            }
            let (lane, len) =
                Lane::new(segment, rows, chunk_bytes, first, layer_len).ok_or_else(too_large)?;
            first += lane.chunks;
            layer_len = layer_len.checked_add(len).ok_or_else(too_large)?;
            // Cannot fail: a format has no more segments than this holds.
            let _ = lanes.push(lane);
        }
        let total = layer_len.checked_mul(layers).filter(|&total| total <= isize::MAX as usize);
        let total = total.ok_or_else(too_large)?;
        let format = config.format.clone();
        Ok(Self { format, layers, rows, chunk_bytes, lanes, layer_len, total })
    }

    pub(super) fn total(&self) -> usize {
        self.total
    }

    pub(super) fn chunks_per_layer(&self) -> usize {
        self.lanes.iter().map(|lane| lane.chunks).sum()
    }

    pub(super) fn chunk_count(&self) -> usize {
        self.layers * self.chunks_per_layer()
    }

    /// Offset and length of every chunk, in the order of the chunk table.
    pub(super) fn spans(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.layers).flat_map(move |layer| {
            self.lanes.iter().flat_map(move |lane| {
                (0..lane.chunks).map(move |index| {
                    let at = layer * self.layer_len + lane.offset + index * lane.chunk_len;
                    let last = index + 1 == lane.chunks;
                    (at, if last { lane.last_len } else { lane.chunk_len })
                })
            })
        })
    }
}

impl Lane {
    /// The lane and the bytes that it takes of a layer. None on overflow.
    fn new(
        segment: Segment,
        rows: usize,
        chunk_bytes: usize,
        first: usize,
        offset: usize,
    ) -> Option<(Self, usize)> {
        let Segment { bytes, stride } = segment;
        // At least one row fits, so the quotient has a logarithm; no more rows than there are.
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
        let lane = Self { shift, bytes, stride, first, chunks, offset, chunk_len, last_len };
        Some((lane, len))
    }
}
