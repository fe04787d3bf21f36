//! The memory of a pool, described.

use std::ffi::c_void;
use std::sync::Arc;

use crate::boundary::{self, OutPtr, check_capacity, enter, give_struct};
use crate::handle;
use crate::pool::{Pool, avsg_pool};
use crate::segments::AVSG_MAX_SEGMENTS;
use crate::status::{Failure, avsg_status, avsg_status::AVSG_BUSY};
use avsg::pool::{HostPool, Pages, Role};
use avsg::rows::{MAX_SEGMENTS, Segment};

/// The pages of a pool's memory.
#[repr(C)]
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
#[repr(C)]
pub enum avsg_role {
    /// The process reads rows, and its mapping is read-only.
    AVSG_ROLE_READER = 0,
    /// The process reads and writes rows.
    AVSG_ROLE_WRITER = 1,
}

/// How the rows of a pool's file are read and written.
#[repr(C)]
pub enum avsg_io {
    /// Not at all: the rows are in memory.
    AVSG_IO_NONE = 0,
    /// By io_uring, all reads of a transfer in flight at once.
    AVSG_IO_URING = 1,
    /// By preadv and pwritev, where the kernel refuses io_uring.
    AVSG_IO_PREADV = 2,
}

/// The description of a pool. What follows `role` is 0 for rows in memory.
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
    /// Bytes of all chunks; of a pool in a file, those of its queue of writes.
    pub bytes: usize,
    /// Bytes of the chunks that are in hugepages.
    pub huge_bytes: usize,
    /// The number of chunks.
    pub chunks: usize,
    /// An `avsg_pages`: the kind that the pool has, or AVSG_PAGES_CALLER.
    pub pages: i32,
    /// An `avsg_role` of this process.
    pub role: i32,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of the block that records are padded to.
    pub block_bytes: usize,
    /// Bytes of the longest record: the rows of an id in the layers of an indexer, with checksums and padding.
    pub record_bytes: usize,
    /// The padding's share of the bytes of all records, 0 to 1.
    pub padding: f64,
    /// Reads of the file until now. Records that are neighbours share one.
    pub reads: u64,
    /// Bytes that these read.
    pub read_bytes: u64,
    /// Writes to the file until now.
    pub writes: u64,
    /// Bytes that these wrote.
    pub written_bytes: u64,
    /// An `avsg_io`.
    pub io: i32,
    /// Always 0.
    pub reserved: u32,
    /// The sessions that the file was made with, as are the numbers below (`avsg_pool_file`).
    pub sessions: usize,
    /// Rows of the blocks of a session.
    pub session_rows: usize,
    /// The most bytes of the caller for each session.
    pub session_bytes: usize,
    /// Bytes of the caller for each token.
    pub token_bytes: usize,
}

fn pool_info(pool: &HostPool) -> avsg_pool_info {
    let segments = pool.format().as_slice();
    let of_file = pool.store().map(|store| (Some(store.info()), store.stats()));
    let (file, done) = of_file.unwrap_or_default();
    let sessions = file.as_ref().map(|info| info.file.sessions.clone()).unwrap_or_default();
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
        file_bytes: file.as_ref().map_or(0, |file| file.file_bytes),
        block_bytes: file.as_ref().map_or(0, |file| file.block),
        record_bytes: file.as_ref().map_or(0, |file| file.record_bytes),
        padding: file.as_ref().map_or(0.0, |file| file.padding),
        reads: done.reads,
        read_bytes: done.read_bytes,
        writes: done.writes,
        written_bytes: done.written_bytes,
        io: file.as_ref().map_or(0, |file| if file.io_uring { 1 } else { 2 }),
        reserved: 0,
        sessions: sessions.count,
        session_rows: sessions.rows,
        session_bytes: sessions.bytes,
        token_bytes: sessions.token_bytes,
    }
}

/// Describes a pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_get_info(
    pool: *const avsg_pool,
    info: *mut avsg_pool_info,
) -> avsg_status {
    let describe = || Ok(pool_info(&handle::shared::<Pool>(pool)?.host));
    contract!(give_struct(info, describe))
}

/// A contiguous range of a pool: rows of one layer and segment.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_chunk {
    /// The first byte.
    pub data: *mut c_void,
    /// The length in bytes.
    pub bytes: usize,
}

/// Gives every chunk of a pool, for registration with a device: layer by layer, and segment by
/// segment in each. `count` receives their number, also if it is above `capacity`, which is
/// AVSG_INVALID; a `capacity` of 0 asks for `count` only. A reader must not write the chunks. With a
/// layout they are the whole pages of its regions, without regions that have a device address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_get_chunks(
    pool: *const avsg_pool,
    chunks: *mut avsg_chunk,
    capacity: usize,
    count: *mut usize,
) -> avsg_status {
    enter(|| {
        let out = contract!(OutPtr::new("count", count, 0)?);
        let pool = handle::shared::<Pool>(pool)?;
        let all = pool.host.chunks();
        let count = all.len();
        out.write(count);
        if capacity != 0 {
            check_capacity(count, capacity, "chunks")?;
            let to = contract!(boundary::array_mut("chunks", chunks, count)?);
            for (to, chunk) in to.iter_mut().zip(all) {
                *to = avsg_chunk { data: chunk.ptr().cast(), bytes: chunk.len() };
            }
        }
        Ok(())
    })
}

/// Makes this process a reader of the pool, so that another process can become its writer.
/// AVSG_BUSY while the pool has engines; destroy them first.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_pool_demote(pool: *mut avsg_pool) -> avsg_status {
    enter(|| {
        let mut pool = handle::exclusive::<Pool>(pool)?;
        let Some(host_pool) = Arc::get_mut(&mut pool.host) else {
            let text = "pool is in use by an engine, but demote makes its memory read-only; destroy \
                        the pool's engines first";
            return Err(Failure::new(AVSG_BUSY, text.into()));
        };
        Ok(host_pool.demote()?)
    })
}
