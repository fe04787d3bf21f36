//! Rows in memory that the caller laid out: any address that is base + block * a + layer * b +
//! row * c, in one region or in several.

use std::ops::Range;
use std::sync::Arc;

use super::chunk::{Chunk, DeviceStart, Start};
use super::geometry::{Geometry, LaidOut, PoolConfig};
use crate::overlap::{self, Content, Grid};
use crate::rows::{self, Strides};
use crate::system::address::Address;
use crate::system::reserve;
use crate::{Result, ensure, invalid};

const WHAT: &str = "pool layout";

/// A contiguous range of the caller's memory, of any length and alignment.
#[derive(Debug, Clone, Copy)]
pub struct Region {
    /// The range.
    pub memory: Chunk,
    /// The address of the first byte for the kernels of a device, if the caller has registered the
    /// memory. Otherwise [`RegisteredPool`](crate::ascend::RegisteredPool) registers the pages.
    pub device_address: Option<u64>,
}

/// Where some rows of one segment are: row r of layer l is at `offset` +
/// (l - `layers.start`) * `layer_stride` + the [`Strides`] of r - `rows.start` bytes from the start
/// of its region.
#[derive(Debug, Clone)]
pub struct Part {
    /// Index of the segment.
    pub segment: usize,
    /// The layers.
    pub layers: Range<usize>,
    /// The rows. If a segment's rows are in several parts, all but the last hold the same power of
    /// two of rows.
    pub rows: Range<usize>,
    /// Index of the region.
    pub region: usize,
    /// Bytes from the start of the region to the first row of the first layer.
    pub offset: usize,
    /// Bytes from one layer to the next; any for one layer.
    pub layer_stride: usize,
}

/// The layout of a pool in the caller's memory. Every row of every layer and segment is in one part.
#[derive(Debug, Clone, Copy)]
pub struct HostLayout<'a> {
    /// The caller's memory: at most as many regions as parts.
    pub regions: &'a [Region],
    /// The distances of the rows of each segment. All segments have the same rows per block.
    pub strides: &'a [Strides],
    /// The parts, in any order, of rows that do not overlap.
    pub parts: &'a [Part],
}

impl PoolConfig {
    /// Lays the rows of the pool out in memory of the caller.
    ///
    /// # Safety
    /// - Each region is valid for reads and writes of its length until every pool of the configuration is
    ///   dropped, and a device address is that of registered memory as long.
    /// - Other accesses to the rows keep the rules of the [module](super) for raw pointers.
    ///
    /// # Errors
    /// If a number is out of range, a region is not in the address space, a part does not fit its
    /// region, two rows overlap, a row is in no part or in two, or the configuration names a file.
    pub unsafe fn with_layout(self, layout: &HostLayout<'_>) -> Result<Self> {
        ensure!(self.file.is_none(), "pool file" is "set", but "these rows are in memory of the caller";
            "leave the file or the layout out");
        Ok(Self { layout: Some(Arc::new(layout.resolve(&self)?)), ..self })
    }
}

impl HostLayout<'_> {
    /// Checks the numbers of regions and parts, before anything else of them is read: each part holds
    /// rows that no other has, and each region is that of a part.
    ///
    /// # Errors
    /// If there are more parts than rows of all layers and segments, or more regions than parts.
    pub fn check_counts(config: &PoolConfig, regions: usize, parts: usize) -> Result<()> {
        let segments = config.format.as_slice().len();
        let most = config.layers.saturating_mul(config.rows).saturating_mul(segments);
        for (what, count, most, of) in
            [("parts", parts, most, "rows"), ("regions", regions, parts, "parts")]
        {
            ensure!(count <= most, what is count, but "there are {most} {of}";
                "pass the number of elements of the array");
        }
        Ok(())
    }

    /// Checks the layout and works out where its chunks are.
    fn resolve(&self, config: &PoolConfig) -> Result<LaidOut> {
        Self::check_counts(config, self.regions.len(), self.parts.len())?;
        let segments = config.format.as_slice();
        ensure!(self.strides.len() == segments.len(), "strides" is self.strides.len(), but
            "a row has {} segments", segments.len(); "pass the strides of each segment");
        let block_rows = self.strides[0].block_rows;
        for other in self.strides {
            ensure!(other.block_rows == block_rows, "block rows" is other.block_rows, but
                "another segment has {block_rows}"; "give all segments the same rows per block");
        }
        for (index, region) in self.regions.iter().enumerate() {
            let (content, memory) = (Content::Region(index), &region.memory);
            let addresses = [Some(memory.ptr().addr() as u64), region.device_address];
            for address in addresses.into_iter().flatten() {
                Grid::of(content, address as usize, Strides::rows(0), [1, memory.len()])?;
            }
        }
        for part in self.parts {
            self.check(config, part)?;
        }
        let chunk_rows = |segment: usize| {
            let of_segment = self.parts.iter().filter(|part| part.segment == segment);
            of_segment.map(|part| part.rows.len()).max().unwrap_or(0)
        };
        let parts =
            self.strides.iter().enumerate().map(|(s, &strides)| Ok((chunk_rows(s), strides)));
        let geometry = Geometry::of_parts(config, parts)?;
        let chunks = self.ranges()?;
        // One of the first chunks is missing if there are more than the parts hold.
        let held = self.parts.iter().map(|part| part.layers.len()).fold(0, usize::saturating_add);
        let count = geometry.chunk_count().min(held.saturating_add(1));
        let mut starts = reserve::filled(WHAT, count, None)?;
        for part in self.parts {
            self.place(part, &geometry, &chunks, &mut starts)?;
        }
        if let Some(at) = starts.iter().position(Option::is_none) {
            let (layer, segment, rows) = geometry.of_chunk(at);
            return Err(
                invalid!("layer" is format!("{layer}, segment {segment}, row {}", rows.start), but
                "no part holds it"; "cover every row of every layer"),
            );
        }
        let starts: Box<[Start]> =
            reserve::collected(WHAT, starts.len(), starts.into_iter().flatten())?.into();
        overlap::check(geometry.grids(&starts, Start::in_process))?;
        overlap::check(geometry.grids(&starts, Start::on_device))?;
        let lens = self.regions.iter().map(|region| region.memory.len());
        // Regions may overlap.
        let bytes = lens.fold(0, usize::saturating_add);
        Ok(LaidOut { geometry, starts, chunks, bytes })
    }

    fn check(&self, config: &PoolConfig, part: &Part) -> Result<()> {
        let segments = config.format.as_slice();
        rows::index("segment of a part", part.segment, segments.len())?;
        rows::index("region of a part", part.region, self.regions.len())?;
        for (what, range, count) in [
            ("layers of a part", &part.layers, config.layers),
            ("rows of a part", &part.rows, config.rows),
        ] {
            ensure!(!range.is_empty() && range.end <= count,
                what is format!("{}..{}", range.start, range.end), but "the pool has {count}";
                "pass a range inside it");
        }
        let bytes = segments[part.segment].bytes;
        let content = Content::Of("rows", [part.layers.start, part.segment]);
        let layers = part.layers.len() - 1;
        // Otherwise the layers would need more chunks than there is memory.
        ensure!(layers == 0 || part.layer_stride >= bytes, "layer stride" is part.layer_stride, but
            "the segment holds {bytes} bytes"; "pass a stride that covers them");
        let rows = Grid::of(content, 0, self.strides[part.segment], [part.rows.len(), bytes])?;
        let span = rows.iter().map(Grid::end).max().unwrap_or(0);
        let layers = layers.checked_mul(part.layer_stride);
        let end = layers.and_then(|layers| span.checked_add(layers)?.checked_add(part.offset));
        let len = self.regions[part.region].memory.len();
        ensure!(end.is_some_and(|end| end <= len),
            "end of a part" is end.map_or("beyond the address space".into(), |end| end.to_string()),
            but "region {} has {len} bytes", part.region;
            "pass a longer region or smaller strides");
        Ok(())
    }

    /// Writes the starts of a part's chunk in each of its layers.
    fn place(
        &self,
        part: &Part,
        geometry: &Geometry,
        registered: &[Chunk],
        starts: &mut [Option<Start>],
    ) -> Result<()> {
        let segment = &geometry.segments[part.segment];
        let chunk_rows = 1 << segment.shift;
        let fits = part.rows.start.is_multiple_of(chunk_rows)
            && (part.rows.len() == chunk_rows || part.rows.end == geometry.rows)
            && (segment.chunks == 1
                || chunk_rows.is_multiple_of(self.strides[0].block_rows.max(1)));
        ensure!(fits, "rows of a part" is format!("{}..{}", part.rows.start, part.rows.end), but
            "the parts of segment {} hold {chunk_rows} rows each", part.segment;
            "divide the rows into equal parts of a power of two of rows and of whole blocks");
        let region = &self.regions[part.region];
        for layer in part.layers.clone() {
            let offset = part.offset + (layer - part.layers.start) * part.layer_stride;
            let ptr = region.memory.ptr().wrapping_add(offset);
            let device = match region.device_address {
                Some(address) => DeviceStart::Address(address.wrapping_add(offset as u64)),
                None => {
                    let inside = |range: &Chunk| (range.ptr()..range.end()).contains(&ptr);
                    let range = registered.iter().position(inside).unwrap_or(0);
                    DeviceStart::Registered(range, ptr.addr() - registered[range].ptr().addr())
                }
            };
            let at = layer * geometry.chunks_per_layer()
                + segment.first
                + (part.rows.start >> segment.shift);
            let Some(start) = starts.get_mut(at) else { continue };
            if start.replace(Start { at: Address(ptr), device }).is_some() {
                let value = format!("{layer}, segment {}, row {}", part.segment, part.rows.start);
                return Err(invalid!("layer" is value, but "two parts hold it";
                    "put each row into one part"));
            }
        }
        Ok(())
    }

    /// Returns the ranges that a device must register: the whole pages of all regions without a
    /// device address. Regions that share a page are one range, because a page is registered once.
    fn ranges(&self) -> Result<Box<[Chunk]>> {
        let page = rustix::param::page_size();
        let pages = |region: &Region| {
            let at = region.memory.ptr().map_addr(|at| at - at % page);
            Chunk::new(at, (region.memory.end().addr() - at.addr()).next_multiple_of(page))
        };
        let unregistered = self.regions.iter().filter(|region| region.device_address.is_none());
        let count = self.regions.len();
        let mut all = reserve::collected(WHAT, count, unregistered.filter_map(pages))?;
        all.sort_unstable_by_key(|range: &Chunk| range.ptr().addr());
        all.dedup_by(|range, last| {
            let joined = range.ptr() < last.end();
            if joined {
                last.len = last.len.max(range.end().addr() - last.ptr().addr());
            }
            joined
        });
        Ok(reserve::copied(WHAT, &all)?.into())
    }
}
