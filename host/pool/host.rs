//! A pool in this process: its chunks and the access to its rows.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::atomic_copy;
use super::chunk::{Chunk, DeviceStart, RowView, Start};
use super::file;
use super::geometry::{self, Geometry, PAGE, Pages, PoolConfig};

use crate::disk::Store;
use crate::rows::{self, Row, RowFormat};
use crate::system::address::Address;
use crate::system::allocator::{Allocated, Allocator};
use crate::system::fork::Birth;
use crate::system::mapping::Mapping;
use crate::system::reserve;
use crate::{Result, ensure};

const TABLE: &str = "chunk table";

/// The access of a process to a pool. One process at a time is its writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads rows; an imported mapping is read-only.
    Reader,
    /// Reads and writes rows.
    Writer,
}

pub(super) enum Backing {
    /// The file, whose open file description has the lock of the writer, and its mapping.
    File(OwnedFd, Mapping),
    /// The caller's memory, with what its allocator gave.
    Caller { _chunks: Vec<Allocated> },
    /// A file that is not mapped.
    Disk(Arc<Store>),
}

/// The host pool. The [module](super) describes its layout and when a row may be read or written.
pub struct HostPool {
    pub(crate) geometry: Geometry,
    // The chunks stay mapped as long as the pool: `backing` owns them, or the caller of
    // `PoolConfig::with_layout` guarantees it. The methods of `&HostPool` access them only through `atomic_copy`.
    /// The ranges that a device registers.
    pub(super) chunks: Box<[Chunk]>,
    /// The first row of each chunk of rows, layer by layer and segment by segment.
    pub(crate) starts: Box<[Start]>,
    pub(super) bytes: usize,
    pub(super) backing: Backing,
    pub(super) role: Role,
    pub(super) pages: Pages,
    pub(super) huge_bytes: usize,
    pub(super) birth: Birth,
}

impl HostPool {
    /// Returns the most bytes of memory that [`Self::new`] allocates; with an allocator, what it is asked for;
    /// 0 with a layout. A pool in a file allocates its queue of writes and a bit or two per row.
    ///
    /// # Errors
    /// If the geometry is invalid, or `config.pages` is [`Pages::Caller`] without an allocator.
    pub fn plan_bytes(config: &PoolConfig) -> Result<usize> {
        if config.layout.is_some() {
            return Ok(0);
        }
        if let Some(file) = &config.file {
            return Store::plan_bytes(&geometry::shape(config)?, file);
        }
        let total = Geometry::new(config)?.total;
        if config.allocator.is_some() { Ok(total) } else { file::mapped_len(total, config.pages) }
    }

    /// Allocates a zeroed and populated pool and makes this process its writer. In a file, rows that were
    /// never written are not zero, but an error when they are read. By a layout, rows are what they were, and
    /// the pool cannot be exported.
    ///
    /// # Errors
    /// If the geometry is invalid, the system or the allocator refuses a call, or less memory is
    /// available than the pool needs; nothing is allocated then, and no file is left behind. For a pool
    /// in a file also if the file exists, or the file system lacks space or refuses O_DIRECT.
    pub fn new(config: &PoolConfig) -> Result<Self> {
        if config.file.is_some() {
            return Self::in_file(config, true, geometry::DIRECT);
        }
        if let Some(laid_out) = &config.layout {
            let (geometry, chunks) =
                (laid_out.geometry.clone(), reserve::copied(TABLE, &laid_out.chunks)?);
            let (backing, pages) = (Backing::Caller { _chunks: Vec::new() }, (Pages::Caller, 0));
            let pool = Self::in_chunks(geometry, chunks.into(), backing, Role::Writer, pages)?;
            let starts = reserve::copied(TABLE, &laid_out.starts)?.into();
            return Ok(Self { starts, bytes: laid_out.bytes, ..pool });
        }
        let geometry = Geometry::new(config)?;
        if let Some(allocator) = &config.allocator {
            return Self::from_allocator(geometry, allocator);
        }
        let allocation = file::allocate(geometry.total, config.pages)?;
        file::lock(&allocation.fd)?;
        let chunks = chunks_in(&geometry, &allocation.mapping)?;
        let pages = (allocation.pages, allocation.huge_bytes);
        let backing = Backing::File(allocation.fd, allocation.mapping);
        Self::in_chunks(geometry, chunks, backing, Role::Writer, pages)
    }

    /// Allocates each chunk from the caller's allocator.
    fn from_allocator(geometry: Geometry, allocator: &Arc<dyn Allocator>) -> Result<Self> {
        const WHAT: &str = "chunk of the host pool";
        let mut memory = reserve::with_capacity(TABLE, geometry.chunk_count())?;
        let mut chunks = reserve::with_capacity(TABLE, geometry.chunk_count())?;
        for (_, len) in geometry.spans() {
            let chunk = Allocated::zeroed(allocator, WHAT, len, PAGE)?;
            chunks.extend(Chunk::new(chunk.ptr(), len));
            memory.push(chunk);
        }
        let (backing, pages) = (Backing::Caller { _chunks: memory }, (Pages::Caller, 0));
        Self::in_chunks(geometry, chunks.into(), backing, Role::Writer, pages)
    }

    /// Makes a pool whose chunks of rows are the ranges that a device registers.
    pub(super) fn in_chunks(
        geometry: Geometry,
        chunks: Box<[Chunk]>,
        backing: Backing,
        role: Role,
        (pages, huge_bytes): (Pages, usize),
    ) -> Result<Self> {
        let start = |(index, chunk): (usize, &Chunk)| Start {
            at: Address(chunk.ptr()),
            device: DeviceStart::Registered(index, 0),
        };
        let starts = chunks.iter().enumerate().map(start);
        let starts = reserve::collected(TABLE, chunks.len(), starts)?.into();
        let birth = Birth::now();
        let bytes = chunks.iter().map(Chunk::len).sum();
        Ok(Self { geometry, chunks, starts, bytes, backing, role, pages, huge_bytes, birth })
    }

    /// Returns the format of a row.
    pub fn format(&self) -> &RowFormat {
        &self.geometry.format
    }

    /// Returns the number of layers.
    pub fn layers(&self) -> usize {
        self.geometry.layers
    }

    /// Returns the number of rows in each layer.
    pub fn rows(&self) -> usize {
        self.geometry.rows
    }

    /// Returns the access of this process.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the kind of pages that the pool has.
    pub fn pages(&self) -> Pages {
        self.pages
    }

    /// Returns the bytes that hugepages map, as counted when this process created or imported the
    /// pool.
    pub fn huge_bytes(&self) -> usize {
        self.huge_bytes
    }

    /// Returns the length of the pool's memory in bytes; of a pool in a file, that of its queue of writes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the ranges that a device registers before its kernels read rows, and unregisters
    /// before the pool is dropped: every chunk, layer by layer and segment by segment, or the whole
    /// pages of the regions of [`PoolConfig::with_layout`] that the caller has not registered.
    pub fn chunks(&self) -> impl ExactSizeIterator<Item = Chunk> + '_ {
        self.chunks.iter().copied()
    }

    /// Returns a view of the rows of one layer and segment, which has their addresses. The [module](super) says when one
    /// may be dereferenced, and only a writer may write there.
    ///
    /// # Errors
    /// If there is no such layer or segment, or the rows are in a file.
    pub fn view(&self, layer: usize, segment: usize) -> Result<RowView<'_>> {
        self.birth.check("pool")?;
        ensure!(!matches!(self.backing, Backing::Disk(_)), "pool" is "in a file", but
            "its rows have no address in memory"; "read and write whole rows");
        rows::index("layer", layer, self.geometry.layers)?;
        rows::index("segment", segment, self.geometry.segments.len())?;
        Ok(self.checked_view(layer, segment))
    }

    /// Returns [`Self::view`] of a layer and a segment that were checked, in this process's memory.
    ///
    /// # Panics
    /// If there is no such layer or segment, or the rows are in a file.
    pub(crate) fn checked_view(&self, layer: usize, segment: usize) -> RowView<'_> {
        let layout = &self.geometry.segments[segment];
        let first = layer * self.geometry.chunks_per_layer() + layout.first;
        let starts = &self.starts[first..first + layout.chunks];
        RowView::new(starts, self.geometry.rows, layout.shift, layout.strides.steps())
    }

    /// Writes a whole row, whose segments are back to back in `bytes`.
    ///
    /// # Errors
    /// As for [`Self::write_rows`].
    pub fn write_row(&self, layer: usize, row: usize, bytes: &[u8]) -> Result<()> {
        self.geometry.format.expect_row(bytes.len())?;
        self.write_rows(&[layer], row, bytes)
    }

    /// Writes the rows from row `first` on of some layers: `bytes` has all rows of each layer, in the order of the
    /// list, with the segments of a row back to back. Those of a file go to its queue of writes
    /// ([`Store::append`]).
    ///
    /// # Errors
    /// If there is no such layer or row, the length is not that of whole rows, this process may only read, or a
    /// write fails: then the rows of the file that were not taken are errors when they are read.
    pub fn write_rows(&self, layers: &[usize], first: usize, bytes: &[u8]) -> Result<()> {
        let (rows, len) = (self.rows_of(layers, first, bytes.len())?, self.geometry.format.bytes());
        (first..first + rows).try_for_each(|row| self.check_kept(row))?;
        let all = (0..rows).flat_map(|n| (0..layers.len()).map(move |layer| (n, layer)));
        self.write_each(all.map(|(n, layer)| {
            let row = &bytes[(layer * rows + n) * len..][..len];
            self.geometry.format.row(layers[layer], first + n, row)
        }))
    }

    /// Checks the rows of some layers whose bytes are these, and returns the number of rows.
    fn rows_of(&self, layers: &[usize], first: usize, bytes: usize) -> Result<usize> {
        layers.iter().try_for_each(|&layer| rows::index("layer", layer, self.geometry.layers))?;
        let each = layers.len().saturating_mul(self.geometry.format.bytes());
        ensure!(bytes.checked_rem(each).unwrap_or(bytes) == 0, "rows buffer" is
            format!("{bytes} bytes"), but "a row of {} layers has {each}", layers.len();
            "pass whole rows of each layer");
        let rows = bytes.checked_div(each).unwrap_or(0);
        let last = rows.checked_sub(1).map(|more| first.saturating_add(more));
        last.map_or(Ok(()), |last| rows::index("row", last, self.geometry.rows))?;
        Ok(rows)
    }

    /// Writes whole rows.
    pub(crate) fn write_each<'a>(&self, rows: impl Iterator<Item = Row<'a>>) -> Result<()> {
        self.check_writer()?;
        if let Backing::Disk(store) = &self.backing {
            return store.append(rows);
        }
        for Row { layer, row, parts } in rows {
            for (segment, part) in parts.iter().take(self.geometry.segments.len()).enumerate() {
                let ptr = self.locate(layer, segment, row)?;
                // SAFETY: `locate` returned the address of a row, and a part has the bytes of its segment, as
                // `RowFormat::row` and `Resources::write_rows` cut it. A writer maps the pool for writing.
                unsafe { atomic_copy::copy_in(part, ptr) };
            }
        }
        Ok(())
    }

    /// Checks that this process may write.
    pub(super) fn check_writer(&self) -> Result<()> {
        ensure!(self.role != Role::Reader, "pool role" is "reader", but
            "only the writer writes rows";
            "import the pool as its writer once the other was dropped or demoted");
        Ok(())
    }

    /// Reads a whole row into `into`, its segments back to back.
    ///
    /// # Errors
    /// As for [`Self::read_rows`].
    pub fn read_row(&self, layer: usize, row: usize, into: &mut [u8]) -> Result<()> {
        self.geometry.format.expect_row(into.len())?;
        self.read_rows(&[layer], row, into)
    }

    /// Reads the rows from row `first` on of some layers into `into`, as [`Self::write_rows`] takes them.
    ///
    /// # Errors
    /// If there is no such layer or row, the length is not that of whole rows, or a row of a file is not whole or
    /// cannot be read.
    pub fn read_rows(&self, layers: &[usize], first: usize, into: &mut [u8]) -> Result<()> {
        let rows = self.rows_of(layers, first, into.len())?;
        if let Backing::Disk(store) = &self.backing {
            return store.read_rows(layers, first..first + rows, into);
        }
        let mut rest = into;
        for (&layer, row) in layers.iter().flat_map(|layer| (0..rows).map(move |row| (layer, row)))
        {
            for (index, segment) in self.geometry.format.as_slice().iter().enumerate() {
                let ptr = self.locate(layer, index, first + row)?;
                let (part, after) = rest.split_at_mut(segment.bytes);
                // SAFETY: `locate` returned the address of a row, so `ptr` is valid for the
                // `segment.bytes` bytes of `part`.
                unsafe { atomic_copy::copy_out(ptr, part) };
                rest = after;
            }
        }
        Ok(())
    }

    fn locate(&self, layer: usize, segment: usize, row: usize) -> Result<*mut u8> {
        rows::index("row", row, self.geometry.rows)?;
        Ok(self.view(layer, segment)?.ptr(row).cast_mut())
    }
}

impl fmt::Debug for HostPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostPool").field("geometry", &self.geometry).finish_non_exhaustive()
    }
}

pub(super) fn chunks_in(geometry: &Geometry, mapping: &Mapping) -> Result<Box<[Chunk]>> {
    ensure!(geometry.total <= mapping.len(),
        "pool memory" is format!("{} bytes", mapping.len()), but
        "this geometry needs {}", geometry.total; "export the pool anew with its own descriptor");
    let spans = geometry.spans();
    let chunks = spans.filter_map(|(at, len)| Chunk::new(mapping.ptr().wrapping_add(at), len));
    Ok(reserve::collected(TABLE, geometry.chunk_count(), chunks)?.into())
}
