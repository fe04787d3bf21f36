//! A pool in this process: its chunks, and the ways to touch a row.

use std::fmt;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};

use super::geometry::{Geometry, Lane, PoolConfig};
use super::lease::Lease;
use super::pages::Pages;
use super::{ladder, words};

use crate::mapping::Mapping;
use crate::rows::{self, RowFormat};
use crate::{Error, Result};

/// What a process may do with a pool. One process at a time is its writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads rows; an imported mapping is read-only.
    Reader,
    /// Reads and writes rows.
    Writer,
}

/// One contiguous range of rows of one layer and segment, whole pages of it.
#[derive(Debug, Clone, Copy)]
pub struct Chunk {
    ptr: NonNull<u8>,
    len: usize,
}

impl Chunk {
    /// A range that the caller owns, for [`HostPool::from_caller`]. None for a null pointer.
    pub fn new(ptr: *mut u8, len: usize) -> Option<Self> {
        NonNull::new(ptr).map(|ptr| Self { ptr, len })
    }

    /// Where it begins.
    pub fn ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Its bytes; the last chunk of a segment may be shorter than the others.
    #[expect(clippy::len_without_is_empty, reason = "a chunk holds at least one row")]
    pub fn len(&self) -> usize {
        self.len
    }
}

/// What keeps the chunks alive. Dropping the mapping unmaps them.
pub(super) enum Backing {
    File { fd: OwnedFd, mapping: Mapping, lease: Option<Lease> },
    Caller,
}

/// The host pool. See the [module](super) for its layout and for who may touch a row when.
pub struct HostPool {
    pub(super) geometry: Geometry,
    // Before `backing`, whose drop ends the validity of these pointers.
    pub(super) chunks: Box<[Chunk]>,
    pub(super) backing: Backing,
    pub(super) role: Role,
    pub(super) pages: Pages,
    pub(super) huge_bytes: usize,
}

// SAFETY: the chunks belong to the process, not to a thread: `backing` owns them, or the caller of
// `from_caller` promised so.
unsafe impl Send for HostPool {}
// SAFETY: the methods of `&HostPool` touch the chunks only through `words`, which is atomic; what
// is done with raw pointers is promised by whoever dereferences them (module documentation).
unsafe impl Sync for HostPool {}

impl HostPool {
    /// Bytes that [`Self::new`] takes at most, to be shown before they are taken.
    pub fn plan_bytes(config: &PoolConfig) -> Result<usize> {
        ladder::mapped_len(Geometry::new(config)?.total(), config.pages)
    }

    /// Takes the memory, zeroed and present, and makes this process its writer. Fails with nothing
    /// taken when it is more than the machine can give.
    pub fn new(config: &PoolConfig) -> Result<Self> {
        let geometry = Geometry::new(config)?;
        let taken = ladder::take(geometry.total(), config.pages)?;
        let lease = Some(Lease::take(&taken.fd)?);
        let chunks = cut(&geometry, &taken.mapping)?;
        let (pages, huge_bytes) = (taken.pages, taken.huge_bytes);
        let backing = Backing::File { fd: taken.fd, mapping: taken.mapping, lease };
        Ok(Self { geometry, chunks, backing, role: Role::Writer, pages, huge_bytes })
    }

    /// A pool over memory that the caller owns, for example what a device's own allocator gave.
    /// `chunks` are in the order of [`PoolConfig::chunk_lens`] and at least as long as those; with a
    /// `chunk_bytes` of `usize::MAX` that is one for each layer and segment. It cannot be exported.
    ///
    /// # Safety
    /// - Each chunk is valid for reads and writes of its length until the pool is dropped.
    /// - No two chunks overlap.
    /// - Other accesses to them keep the promise of the [module](super)'s raw pointers.
    pub unsafe fn from_caller(config: &PoolConfig, chunks: &[Chunk]) -> Result<Self> {
        let geometry = Geometry::new(config)?;
        if geometry.chunk_count() != chunks.len() {
            return Err(Error::invalid(
                "chunk count",
                chunks.len(),
                format!("this geometry has {}", geometry.chunk_count()),
                "pass one chunk for each entry of PoolConfig::chunk_lens",
            ));
        }
        for ((_, need), chunk) in geometry.spans().zip(chunks) {
            if chunk.len < need {
                return Err(Error::invalid(
                    "chunk length",
                    chunk.len,
                    format!("this chunk needs {need} bytes"),
                    "pass the lengths of PoolConfig::chunk_lens",
                ));
            }
        }
        let (backing, pages) = (Backing::Caller, Pages::Caller);
        let chunks = chunks.into();
        Ok(Self { geometry, chunks, backing, role: Role::Writer, pages, huge_bytes: 0 })
    }

    /// The shape of a row.
    pub fn format(&self) -> &RowFormat {
        &self.geometry.format
    }

    /// Layers.
    pub fn layers(&self) -> usize {
        self.geometry.layers
    }

    /// Rows of each layer.
    pub fn rows(&self) -> usize {
        self.geometry.rows
    }

    /// What this process may do.
    pub fn role(&self) -> Role {
        self.role
    }

    /// What the pool really got.
    pub fn pages(&self) -> Pages {
        self.pages
    }

    /// Bytes of it that hugepages map, as far as this process has seen at creation or import.
    pub fn huge_bytes(&self) -> usize {
        self.huge_bytes
    }

    /// Bytes of all chunks.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(Chunk::len).sum()
    }

    /// Every chunk, layer by layer and segment by segment: what a device registers before its
    /// kernels read rows, and unregisters before the pool is dropped.
    pub fn chunks(&self) -> impl ExactSizeIterator<Item = Chunk> + '_ {
        self.chunks.iter().copied()
    }

    /// How a segment's rows lie in each layer: rows per chunk as a shift, and chunks. None if there
    /// is no such segment.
    pub(crate) fn chunking(&self, segment: usize) -> Option<(u32, usize)> {
        self.geometry.lanes.get(segment).map(|lane| (lane.shift, lane.chunks))
    }

    /// The rows of one layer and segment, for copies that look up many of them.
    pub fn view(&self, layer: usize, segment: usize) -> Result<RowView<'_>> {
        let (lane, chunks) = self.lane(layer, segment)?;
        let (shift, stride, rows) = (lane.shift, lane.stride, self.geometry.rows);
        Ok(RowView { chunks: chunks.as_ptr(), rows, shift, stride, pool: PhantomData })
    }

    /// Where a segment of a row begins, or null when there is no such row. Dereferencing it is a
    /// promise: see the [module](super).
    pub fn row_ptr(&self, layer: usize, segment: usize, row: usize) -> *const u8 {
        self.view(layer, segment).map_or(ptr::null(), |view| view.ptr(row))
    }

    /// Like [`Self::row_ptr`] for writing; null for a reader as well.
    pub fn row_mut(&self, layer: usize, segment: usize, row: usize) -> *mut u8 {
        match self.role {
            Role::Writer => self.row_ptr(layer, segment, row).cast_mut(),
            Role::Reader => ptr::null_mut(),
        }
    }

    /// Writes a whole row, its segments back to back in `bytes`.
    pub fn write_row(&self, layer: usize, row: usize, bytes: &[u8]) -> Result<()> {
        self.geometry.format.expect_row(bytes.len())?;
        let mut rest = bytes;
        for (index, segment) in self.geometry.format.as_slice().iter().enumerate() {
            let (part, after) = rest.split_at(segment.bytes);
            self.write_segment(layer, index, row, part)?;
            rest = after;
        }
        Ok(())
    }

    /// Writes one segment of a row.
    pub fn write_segment(
        &self,
        layer: usize,
        segment: usize,
        row: usize,
        bytes: &[u8],
    ) -> Result<()> {
        if self.role == Role::Reader {
            return Err(Error::invalid(
                "pool role",
                "reader",
                "only the writer writes rows",
                "import the pool with Role::Writer once its writer has let go",
            ));
        }
        let (lane, ptr) = self.locate(layer, segment, row)?;
        if bytes.len() != lane.bytes {
            return Err(Error::invalid(
                "segment buffer",
                format!("{} bytes", bytes.len()),
                format!("the segment has {}", lane.bytes),
                "pass the segment's bytes without padding",
            ));
        }
        // SAFETY: `locate` found the row, so `ptr` is valid for the `lane.bytes` bytes that `bytes`
        // has by the check above, and this process maps it for writing by the check of the role.
        unsafe { words::copy_in(bytes, ptr) };
        Ok(())
    }

    /// Reads a whole row into `into`, its segments back to back.
    pub fn read_row(&self, layer: usize, row: usize, into: &mut [u8]) -> Result<()> {
        self.geometry.format.expect_row(into.len())?;
        let mut rest = into;
        for index in 0..self.geometry.format.as_slice().len() {
            let (lane, ptr) = self.locate(layer, index, row)?;
            let (part, after) = rest.split_at_mut(lane.bytes);
            // SAFETY: `locate` found the row, so `ptr` is valid for the `lane.bytes` bytes of `part`.
            unsafe { words::copy_out(ptr, part) };
            rest = after;
        }
        Ok(())
    }

    fn lane(&self, layer: usize, segment: usize) -> Result<(&Lane, &[Chunk])> {
        rows::index("layer", layer, self.geometry.layers)?;
        rows::index("segment", segment, self.geometry.lanes.len())?;
        let lane = &self.geometry.lanes[segment];
        let first = layer * self.geometry.chunks_per_layer() + lane.first;
        Ok((lane, &self.chunks[first..first + lane.chunks]))
    }

    fn locate(&self, layer: usize, segment: usize, row: usize) -> Result<(&Lane, *mut u8)> {
        rows::index("row", row, self.geometry.rows)?;
        let ptr = self.view(layer, segment)?.ptr(row).cast_mut();
        Ok((&self.geometry.lanes[segment], ptr))
    }
}

impl fmt::Debug for HostPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostPool")
            .field("layers", &self.layers())
            .field("rows", &self.rows())
            .field("bytes", &self.bytes())
            .field("chunks", &self.chunks.len())
            .field("role", &self.role)
            .field("pages", &self.pages)
            .finish()
    }
}

/// The rows of one layer and segment: two loads and a multiplication from a row to its address.
#[derive(Debug, Clone, Copy)]
pub struct RowView<'a> {
    chunks: *const Chunk,
    rows: usize,
    shift: u32,
    stride: usize,
    pool: PhantomData<&'a HostPool>,
}

// SAFETY: it is a borrow of the pool's chunk table, which nobody changes while it lives; the rest as
// for `HostPool`.
unsafe impl Send for RowView<'_> {}
// SAFETY: as for Send; its methods only read the table.
unsafe impl Sync for RowView<'_> {}

impl RowView<'_> {
    /// Where `row` begins, or null when there is no such row.
    #[inline]
    pub fn ptr(&self, row: usize) -> *const u8 {
        if row >= self.rows {
            return ptr::null();
        }
        // SAFETY: `row < rows`, and `lane` took as many chunks as `rows` rows have, so the chunk
        // exists; the table lives as long as the pool that this borrows.
        let chunk = unsafe { &*self.chunks.add(row >> self.shift) };
        let within = row & ((1 << self.shift) - 1);
        chunk.ptr().wrapping_add(within * self.stride)
    }
}

/// The chunks of `geometry` in `mapping`.
pub(super) fn cut(geometry: &Geometry, mapping: &Mapping) -> Result<Box<[Chunk]>> {
    let chunk = |(at, len): (usize, usize)| {
        // Both creation and import made the mapping at least this long.
        let inside = at.checked_add(len).is_some_and(|end| end <= mapping.len());
        inside.then(|| Chunk::new(mapping.ptr().wrapping_add(at), len)).flatten()
    };
    let chunks: Option<Box<[Chunk]>> = geometry.spans().map(chunk).collect();
    chunks.ok_or_else(|| {
        Error::invalid(
            "pool memory",
            format!("{} bytes", mapping.len()),
            format!("this geometry needs {}", geometry.total()),
            "export the pool anew with its own descriptor",
        )
    })
}
